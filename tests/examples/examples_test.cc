// Checks the recipes of examples/, each against the figures that its comment works out by hand.
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "sim/observe/phase_usage.h"
#include "sim/recording/replay_settings.h"
#include "sim/study/what_if.h"
#include "tests/trace/support/trace_dump.h"
#include "trace/bytes/byte_source.h"
#include "trace/formats/open_trace.h"
#include "trace/program/program_reader.h"
#include "trace/program/program_text.h"
#include "trace/schedule/schedule.h"

namespace memreplay {
namespace {

using Params = std::map<std::string, int64_t>;

struct Outcome {
  std::shared_ptr<const Trace> trace;
  Bytes requested;
  Bytes allocated;
  Bytes reserved;
  uint64_t ooms = 0;
  std::map<std::string, PhasePeak> phases;
};

Outcome Replay(const std::string& name, const Params& params = {}, const std::string& conf = "") {
  Outcome outcome;
  program::CompileOptions options;
  options.params = params;
  auto trace = program::OpenProgram("examples/" + name + ".txtpb", options);
  EXPECT_TRUE(trace.ok()) << trace.status();
  if (!trace.ok()) return outcome;
  outcome.trace = std::make_shared<const Trace>(*std::move(trace));
  SettingsRequest request;
  request.torch = "2.11";
  if (!conf.empty()) request.conf = conf;
  const auto settings = ResolveSettings(*outcome.trace, request);
  EXPECT_TRUE(settings.ok()) << settings.status();
  const Schedule schedule = Schedule::Build(outcome.trace, 0);
  EXPECT_FALSE(schedule.diagnostics().has_errors());
  PhaseUsage usage(*outcome.trace);
  const auto result = ReplayWhatIf(schedule, *settings, &usage);
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return outcome;
  outcome.requested = result->peak.requested();
  outcome.allocated = result->peak.allocated();
  outcome.reserved = result->peak.reserved();
  outcome.ooms = static_cast<uint64_t>(result->statistics.num_ooms);
  for (const PhasePeak& phase : usage.phases()) outcome.phases[phase.phase] = phase;
  return outcome;
}

TEST(Examples, VariableLengths) {
  const Outcome rising = Replay("variable_lengths");
  EXPECT_EQ(rising.allocated, MiB(786));
  EXPECT_EQ(rising.reserved, MiB(394 + 492 + 590 + 688 + 786));
  EXPECT_EQ(rising.phases.at("rising").reserved, rising.reserved);
  const Outcome padded = Replay("variable_lengths", {{"padded", 1}});
  EXPECT_EQ(padded.reserved, MiB(786));
  // The lengths that are drawn differ and keep to their limits.
  std::set<uint64_t> sizes;
  for (const Event& event : rising.trace->devices[0].events) {
    if (event.kind != EventKind::kAlloc) continue;
    const uint64_t length = event.size.value() / (2 * 8 * 50304);
    EXPECT_EQ(length % 8, 0u);
    EXPECT_GE(length, 16u);
    EXPECT_LE(length, 1024u);
    sizes.insert(length);
  }
  EXPECT_GT(sizes.size(), 50u);
}

TEST(Examples, TwoStreams) {
  EXPECT_EQ(Replay("two_streams").reserved, MiB(4 * 64));
  EXPECT_EQ(Replay("two_streams", {{"steps", 7}}).reserved, MiB(7 * 64));
  EXPECT_EQ(Replay("two_streams", {{"wait", 1}}).reserved, MiB(64));
}

// The activations in flight are the ranks from this one to the last.
TEST(Examples, Pipeline) {
  for (const int64_t pp : {1, 4, 6}) {
    for (int64_t rank = 0; rank < pp; ++rank) {
      const auto in_flight = static_cast<uint64_t>(std::min<int64_t>(pp - rank, 8));
      const Outcome outcome = Replay("pipeline_1f1b", {{"pp", pp}, {"rank", rank}});
      EXPECT_EQ(outcome.allocated, MiB(256 + 32 * in_flight + 16)) << pp << " " << rank;
    }
  }
  EXPECT_EQ(Replay("pipeline_1f1b", {{"micro_batches", 2}}).allocated, MiB(256 + 32 * 2 + 16));
}

TEST(Examples, Fsdp) {
  for (int64_t prefetch = 0; prefetch < 4; ++prefetch) {
    const Outcome outcome = Replay("fsdp", {{"prefetch", prefetch}});
    EXPECT_EQ(outcome.allocated, MiB(576 + 64 * static_cast<uint64_t>(prefetch)));
    EXPECT_EQ(outcome.phases.at("it1.backward").allocated, outcome.allocated);
    // Forward ends with all activations and at most one gathered layer, or has one
    // activation less for each layer that is gathered ahead.
    EXPECT_LT(outcome.phases.at("it1.forward").allocated, outcome.allocated);
  }
  // Half as many ranks: each shard is twice as large.
  EXPECT_EQ(Replay("fsdp", {{"world", 4}}).allocated, MiB(640 + 64));
}

TEST(Examples, KvCache) {
  const Outcome grown = Replay("kv_cache");
  EXPECT_EQ(grown.requested, MiB(3 * 64 + 64 + 64) - KiB(128));
  EXPECT_GT(grown.reserved, Bytes(10 * grown.requested.value()));
  const Outcome paged = Replay("kv_cache", {{"paged", 1}});
  EXPECT_EQ(paged.allocated, MiB(4 * 64));
  EXPECT_EQ(paged.reserved, MiB(4 * 64));
  EXPECT_LT(Replay("kv_cache", {}, "expandable_segments:True").reserved, MiB(512));
}

TEST(Examples, RandomLoad) {
  const Outcome outcome = Replay("random_load");
  EXPECT_LE(outcome.requested, MiB(256));
  EXPECT_GT(outcome.requested, MiB(200));
  EXPECT_EQ(outcome.ooms, 0u);
  std::map<EventKind, int> kinds;
  for (const Event& event : outcome.trace->devices[0].events) ++kinds[event.kind];
  EXPECT_EQ(kinds[EventKind::kAlloc], 5000);
  EXPECT_EQ(kinds[EventKind::kFree], 5000);
  EXPECT_NEAR(kinds[EventKind::kRecordStream], 50, 25);
  EXPECT_GT(kinds[EventKind::kEmptyCache], 0);
}

TEST(Examples, Patterns) {
  const Outcome outcome = Replay("patterns");
  EXPECT_EQ(outcome.phases.at("sawtooth").allocated, MiB(200));
  EXPECT_EQ(outcome.phases.at("sawtooth").reserved, MiB(200));
  EXPECT_EQ(outcome.phases.at("ramp").allocated, MiB(34));
  EXPECT_EQ(outcome.phases.at("ramp").reserved, MiB(20 + 22 + 24 + 26 + 28 + 30 + 32 + 34));
  EXPECT_EQ(outcome.phases.at("checkerboard").allocated, MiB(240));
  EXPECT_EQ(outcome.phases.at("checkerboard").reserved, MiB(320));
  EXPECT_EQ(outcome.phases.at("pinhole").reserved, MiB(80));
  EXPECT_EQ(outcome.requested, MiB(3 * 233) + Bytes(3 * 512));
  // Holes of 20 MiB are too small for 40 wherever they are.
  const Outcome expandable = Replay("patterns", {}, "expandable_segments:True");
  EXPECT_EQ(expandable.phases.at("checkerboard").reserved, MiB(320));
  // One segment grows by pages of 20 MiB.
  EXPECT_EQ(expandable.phases.at("ramp").reserved, MiB(40));
}

// The other spelling means the same.
TEST(Examples, ReadTheSameFromJson) {
  for (const char* name : {"fsdp", "random_load", "patterns", "mechanisms/pending_free"}) {
    const std::string path = std::string("examples/") + name + ".txtpb";
    const auto source = ByteSource::Open(path);
    ASSERT_TRUE(source.ok()) << source.status();
    const auto text = program::ParseProgramText((*source)->Peek(1 << 20));
    ASSERT_TRUE(text.ok()) << text.status();
    std::string json;
    ASSERT_TRUE(google::protobuf::util::MessageToJsonString(text->program, &json).ok());
    const auto json_source = ByteSource::FromBytes(json);
    ASSERT_TRUE(LooksLikeProgramJson((*json_source)->Peek(4096)));
    const auto from_json = ReadProgramJson(**json_source);
    ASSERT_TRUE(from_json.ok()) << from_json.status();
    const auto from_text = OpenTrace(path);
    ASSERT_TRUE(from_text.ok()) << from_text.status();
    EXPECT_EQ(testing::DumpTrace(*from_json), testing::DumpTrace(*from_text));
  }
}

// The tests above run all of them.
TEST(Examples, AreAllRun) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("examples")) {
    if (entry.is_regular_file() && entry.path().extension() == ".txtpb") {
      names.insert(entry.path().stem());
      EXPECT_TRUE(OpenTrace(entry.path()).ok());
    }
  }
  EXPECT_EQ(names, (std::set<std::string>{"fsdp", "kv_cache", "patterns", "pipeline_1f1b",
                                          "random_load", "two_streams", "variable_lengths"}));
}

}  // namespace
}  // namespace memreplay

#include "trace/formats/write_trace.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "tests/trace/support/trace_dump.h"
#include "trace/formats/open_trace.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

using testing::DumpTrace;

class WriteTraceTest : public ::testing::Test {
 protected:
  // Writes the trace as `format` and opens the file, whose name says nothing.
  absl::StatusOr<Trace> Convert(const Trace& trace, std::string_view format) {
    const std::string path = ::testing::TempDir() + "/trace";
    StringSink sink;
    losses_.clear();
    const absl::Status status = FindWritableFormat(format)->write(trace, sink, &losses_);
    if (!status.ok()) return status;
    std::ofstream(path, std::ios::binary | std::ios::trunc) << sink.text();
    return OpenTrace(path);
  }

  std::vector<std::string> losses_;
};

TEST_F(WriteTraceTest, ChainOfConversionsKeepsASnapshot) {
  const std::string original = DumpTrace(testing::SnapshotTrace());
  absl::StatusOr<Trace> trace = testing::SnapshotTrace();
  for (const char* format : {"torch_snapshot_pickle", "protobuf", "flat_jsonl",
                             "torch_snapshot_pickle", "flat_jsonl", "protobuf"}) {
    trace = Convert(*trace, format);
    ASSERT_TRUE(trace.ok()) << format << ": " << trace.status();
    EXPECT_EQ(trace->format, format);
    EXPECT_TRUE(losses_.empty());
    EXPECT_EQ(DumpTrace(*trace), original) << format;
  }
}

TEST_F(WriteTraceTest, SnapshotNamesWhatItLeavesOut) {
  Trace trace = testing::SnapshotTrace();
  Event event;
  event.kind = EventKind::kEmptyCache;
  trace.devices[0].events.kept().insert(trace.devices[0].events.kept().begin(), 2, event);
  trace.devices[0].time_us.insert(trace.devices[0].time_us.begin(), 2, 0);
  trace.devices[1].events[0].id = 3;
  trace.devices[1].events[1].block_size = Bytes(512);
  trace.annotations[0].name = trace.strings.Intern("a\xff");
  const auto again = Convert(trace, "torch_snapshot_pickle");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(losses_, (std::vector<std::string>{
                         "2 events \"empty_cache\" are left out: a snapshot does not record them",
                         "1 allocation ids are left out: a snapshot has none",
                         "1 block sizes of events are left out: a snapshot has none",
                         "1 texts are not UTF-8; the bytes at fault became U+FFFD"}));
  EXPECT_EQ(again->strings[again->annotations[0].name], "a\xef\xbf\xbd");
}

TEST_F(WriteTraceTest, IntegersOfEveryLengthSurviveAPickle) {
  Trace trace = testing::SnapshotTrace();
  trace.devices.resize(1);
  trace.streams.resize(1);
  trace.pools.resize(1);
  trace.layout.has_is_expandable = false;  // of segments and blocks: there are none
  trace.layout.has_block_addresses = false;
  DeviceTrace& device = trace.devices[0];
  device.final_state.clear();
  device.events.clear();
  device.time_us.clear();
  for (int bits = 0; bits < 64; ++bits) {
    for (const int64_t off : {-1, 0, 1}) {
      Event event;
      event.kind = EventKind::kAlloc;
      event.size = Bytes(uint64_t{1} << 20);
      event.address = Address((uint64_t{1} << bits) + static_cast<uint64_t>(off));
      device.events.push_back(event);
      device.time_us.push_back(static_cast<int64_t>(event.address.value()));
    }
  }
  const auto again = Convert(trace, "torch_snapshot_pickle");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(DumpTrace(*again), DumpTrace(trace));
}

TEST_F(WriteTraceTest, ProgramsAreNoSnapshots) {
  Trace program;
  program.is_program = true;
  EXPECT_EQ(ToStd(Convert(program, "torch_snapshot_pickle").status().message()),
            "a schedule cannot be written as a snapshot: expected addresses, found handles (write "
            "the result of its replay instead)");
}

TEST_F(WriteTraceTest, IllFormedTracesAreRefused) {
  Trace trace = testing::SnapshotTrace();
  trace.devices[1].events[4].stream = 2;
  for (const TraceFormat& format : WritableFormats()) {
    EXPECT_EQ(ToStd(Convert(trace, format.name).status().message()),
              "the trace is not well formed: event 4 of device 1 is on a stream not in the table")
        << format.name;
  }
}

TEST_F(WriteTraceTest, FailureOfTheOutputIsTold) {
  struct Failing final : ByteSink {
    absl::Status Append(std::string_view) override { return absl::DataLossError("full"); }
  } sink;
  for (const TraceFormat& format : WritableFormats()) {
    EXPECT_EQ(format.write(testing::SnapshotTrace(), sink, nullptr).code(),
              absl::StatusCode::kDataLoss)
        << format.name;
  }
}

TEST_F(WriteTraceTest, FormatIsChosenByNameOrExtension) {
  EXPECT_EQ(WritableFormatOfPath("a/b.jsonl")->name, "flat_jsonl");
  EXPECT_EQ(WritableFormatOfPath("b.pickle")->name, "torch_snapshot_pickle");
  EXPECT_EQ(WritableFormatOfPath("b.mrpb")->name, "protobuf");
  EXPECT_EQ(WritableFormatOfPath("b.xyz"), nullptr);
  EXPECT_EQ(FindWritableFormat("nothing"), nullptr);
}

// Real snapshots survive every format of ours exactly, and a snapshot in all but
// what the reader counts anew.
TEST_F(WriteTraceTest, RealSnapshotsSurvive) {
  const char* root = std::getenv("MEMREPLAY_SHARED");
  const std::string folder = StrCat(root != nullptr ? root : "../shared", "/data/snapshots/");
  int found = 0;
  for (const char* name :
       {"silmont_cold.pickle", "uoft_before_train_cold.pickle", "nesta_oom_cold.pickle",
        "drisspg_trimmed.pickle", "albi2_settings_two_devices.pickle"}) {
    absl::StatusOr<Trace> trace = OpenTrace(folder + name);
    if (!trace.ok()) continue;
    ++found;
    const std::string original = DumpTrace(*trace);
    for (const char* format : {"protobuf", "flat_jsonl"}) {
      const auto again = Convert(*trace, format);
      ASSERT_TRUE(again.ok()) << name << " " << format << ": " << again.status();
      EXPECT_TRUE(DumpTrace(*again) == original) << name << " " << format;
    }
    trace->diagnostics = Diagnostics();
    auto again = Convert(*trace, "torch_snapshot_pickle");
    ASSERT_TRUE(again.ok()) << name << ": " << again.status();
    again->diagnostics = Diagnostics();
    const std::string before = DumpTrace(*trace);
    const std::string after = DumpTrace(*again);
    size_t at = 0;
    while (at < before.size() && at < after.size() && before[at] == after[at]) ++at;
    EXPECT_TRUE(before == after) << name << "\n"
                                 << before.substr(at > 80 ? at - 80 : 0, 200) << "\n---\n"
                                 << after.substr(at > 80 ? at - 80 : 0, 200);
  }
  if (found == 0) GTEST_SKIP() << "the real snapshots are not there (MEMREPLAY_SHARED)";
}

}  // namespace
}  // namespace memreplay

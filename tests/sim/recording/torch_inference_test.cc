#include <string>

#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "sim/recording/replay_settings.h"
#include "tests/sim/support/made_recording.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// Returns what a snapshot with blocks and events of a release looks like.
Trace WrittenBy(const TorchProfile& profile) {
  Trace trace;
  trace.layout = testing::LayoutOf(profile);
  trace.devices.emplace_back();
  trace.devices[0].events.emplace_back();
  return trace;
}

const TorchProfile& Torch(const char* release) { return **FindTorchProfile(release); }

TEST(InferTorchProfile, NewestOfThoseThatFit) {
  const struct {
    const char* written_by;
    std::string_view taken_as;
  } kCases[] = {
      {"2.0", "2.0"},   {"2.1", "2.1"},   {"2.2", "2.2"},   {"2.3", "2.4"}, {"2.4", "2.4"},
      {"2.5", "2.7"},   {"2.6", "2.7"},   {"2.7", "2.7"},   {"2.8", "2.8"}, {"2.9", "2.9"},
      {"2.10", "2.12"}, {"2.13", "2.15"}, {"2.15", "2.15"},
  };
  for (const auto& c : kCases) {
    const ProfileChoice inferred = InferTorchProfile(WrittenBy(Torch(c.written_by)));
    EXPECT_EQ(inferred.profile->release, c.taken_as) << c.written_by;
  }
}

// Returns the releases that fit, and the keys that say so.
std::string Why(const ProfileChoice& inferred) {
  return StrCat(inferred.fitting.front()->release, " to ", inferred.fitting.back()->release, ": ",
                absl::StrJoin(inferred.evidence, ", "));
}

TEST(InferTorchProfile, SaysWhy) {
  EXPECT_EQ(Why(InferTorchProfile(WrittenBy(Torch("2.6")))),
            "2.5 to 2.7: external_annotations, no compile_context");
  EXPECT_EQ(Why(InferTorchProfile(WrittenBy(Torch("2.0")))),
            "2.0 to 2.0: block history, no block addresses");
  EXPECT_EQ(Why(InferTorchProfile(WrittenBy(Torch("2.8")))),
            "2.8 to 2.8: compile_context, no graph_capture_record_stream_reuse");
  EXPECT_EQ(InferTorchProfile(WrittenBy(Torch("2.6"))).reason, ProfileReason::kLayout);
}

TEST(InferTorchProfile, KeysOfTheSettingsNarrowItDown) {
  Trace trace = WrittenBy(Torch("2.5"));
  trace.settings.emplace();
  trace.settings->conf = "max_non_split_rounding_mb:40";
  EXPECT_EQ(Why(InferTorchProfile(trace)), "2.6 to 2.7: its settings, no compile_context");
  trace = WrittenBy(Torch("2.10"));
  trace.settings.emplace();
  trace.settings->conf = "throw_on_cudamalloc_oom:True";
  EXPECT_EQ(InferTorchProfile(trace).profile->release, "2.12");
}

TEST(InferTorchProfile, AFileWithoutEventsCannotTellItsEventKeys) {
  Trace trace = WrittenBy(Torch("2.9"));
  trace.layout.has_time_us = false;
  trace.layout.has_compile_context = false;
  trace.devices[0].events.clear();
  const ProfileChoice inferred = InferTorchProfile(trace);
  EXPECT_EQ(inferred.profile, &DefaultTorchProfile());
}

TEST(InferTorchProfile, NothingKnownIsTheDefault) {
  const ProfileChoice inferred = InferTorchProfile(Trace());
  EXPECT_EQ(inferred.profile, &DefaultTorchProfile());
  EXPECT_EQ(inferred.fitting.size(), AllTorchProfiles().size());
}

TEST(InferTorchProfile, AnEditedFileIsTakenByItsNewestKey) {
  Trace trace = WrittenBy(Torch("2.9"));
  trace.layout.has_external_annotations = false;
  const ProfileChoice inferred = InferTorchProfile(trace);
  EXPECT_EQ(inferred.profile->release, "2.9");
  EXPECT_EQ(inferred.reason, ProfileReason::kNewestKey);
}

}  // namespace
}  // namespace memreplay

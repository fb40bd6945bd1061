#include "sim/recording/torch_inference.h"

#include <string>

#include "gtest/gtest.h"
#include "tests/sim/support/made_recording.h"

namespace memreplay {
namespace {

// What a snapshot with blocks and events of a release looks like.
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
    const TorchInference inferred = InferTorchProfile(WrittenBy(Torch(c.written_by)));
    EXPECT_EQ(inferred.profile->release, c.taken_as) << c.written_by << ": " << inferred.why;
  }
}

TEST(InferTorchProfile, SaysWhy) {
  EXPECT_EQ(InferTorchProfile(WrittenBy(Torch("2.6"))).why,
            "layout of 2.5 to 2.7 (external_annotations, no compile_context); assumed to be 2.7");
  EXPECT_EQ(InferTorchProfile(WrittenBy(Torch("2.0"))).why,
            "layout of 2.0 (block history, no block addresses)");
  EXPECT_EQ(InferTorchProfile(WrittenBy(Torch("2.8"))).why,
            "layout of 2.8 (compile_context, no graph_capture_record_stream_reuse)");
}

TEST(InferTorchProfile, KeysOfTheSettingsNarrowItDown) {
  Trace trace = WrittenBy(Torch("2.5"));
  trace.settings.emplace();
  trace.settings->conf = "max_non_split_rounding_mb:40";
  EXPECT_EQ(InferTorchProfile(trace).why,
            "layout of 2.6 to 2.7 (its settings, no compile_context); assumed to be 2.7");
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
  const TorchInference inferred = InferTorchProfile(trace);
  EXPECT_EQ(inferred.profile, &DefaultTorchProfile()) << inferred.why;
}

TEST(InferTorchProfile, NothingKnownIsTheDefault) {
  const TorchInference inferred = InferTorchProfile(Trace());
  EXPECT_EQ(inferred.profile, &DefaultTorchProfile());
  EXPECT_NE(inferred.why.find("does not identify its release"), std::string::npos);
}

TEST(InferTorchProfile, AnEditedFileIsTakenByItsNewestKey) {
  Trace trace = WrittenBy(Torch("2.9"));
  trace.layout.has_external_annotations = false;
  const TorchInference inferred = InferTorchProfile(trace);
  EXPECT_EQ(inferred.profile->release, "2.9");
  EXPECT_NE(inferred.why.find("layout of no release"), std::string::npos);
}

}  // namespace
}  // namespace memreplay

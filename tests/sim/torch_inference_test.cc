#include "sim/torch_inference.h"

#include <string>

#include "gtest/gtest.h"

namespace memreplay {
namespace {

// What a snapshot with blocks and events of a release looks like.
Trace WrittenBy(const TorchProfile& profile) {
  Trace trace;
  LayoutFacts& facts = trace.layout;
  const SnapshotLayout& layout = profile.snapshot;
  facts.has_device_traces = true;
  facts.has_allocator_settings = layout.allocator_settings;
  facts.has_external_annotations = layout.external_annotations;
  facts.has_time_us = layout.time_us;
  facts.has_compile_context = layout.compile_context;
  facts.has_user_metadata = layout.user_metadata;
  facts.has_event_pool_id = layout.pool_id;
  facts.has_block_history = layout.block_history;
  facts.has_block_addresses = layout.block_addresses;
  facts.has_is_expandable = layout.is_expandable;
  facts.has_graph_capture_record_stream_reuse = layout.graph_capture_record_stream_reuse;
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
      {"2.0", "2.0"}, {"2.1", "2.1"}, {"2.2", "2.2"},   {"2.3", "2.4"},
      {"2.4", "2.4"}, {"2.5", "2.7"}, {"2.6", "2.7"},   {"2.7", "2.7"},
      {"2.8", "2.8"}, {"2.9", "2.9"}, {"2.13", "2.13"}, {"2.15", "2.13"},
  };
  for (const auto& c : kCases) {
    const TorchInference inferred = InferTorchProfile(WrittenBy(Torch(c.written_by)));
    EXPECT_EQ(inferred.profile->release, c.taken_as) << c.written_by << ": " << inferred.why;
  }
}

TEST(InferTorchProfile, NotNewerThanTheDefaultUnlessItMustBe) {
  const TorchInference inferred = InferTorchProfile(WrittenBy(Torch("2.10")));
  EXPECT_LE(inferred.profile, &DefaultTorchProfile());
  EXPECT_GE(inferred.profile, &Torch("2.10"));
}

TEST(InferTorchProfile, SaysWhy) {
  EXPECT_EQ(InferTorchProfile(WrittenBy(Torch("2.6"))).why,
            "layout of 2.5 to 2.7 (external_annotations, no compile_context); taken as 2.7");
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
            "layout of 2.6 to 2.7 (its settings, no compile_context); taken as 2.7");
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
  EXPECT_NE(inferred.why.find("says nothing"), std::string::npos);
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

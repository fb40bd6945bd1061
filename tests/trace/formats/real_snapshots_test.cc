// Reads public snapshots of real programs. They are no part of this project:
// MEMREPLAY_SHARED names the folder that holds data/snapshots, and without it
// there is nothing to do.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "trace/formats/open_trace.h"

namespace memreplay {
namespace {

struct Expectation {
  const char* file;
  size_t segments;
  size_t blocks;
  // alloc, free_requested, free_completed, segment_alloc, segment_free, snapshot, oom.
  size_t actions[7];
};

// Counted by an independent reader.
constexpr Expectation kFiles[] = {
    {"albi2_settings_two_devices", 2, 7, {}},
    {"bcrafton_train_warm", 96, 550, {2162, 2162, 2162}},
    {"charan_train_warm", 36, 148, {3221, 3220, 3220, 9}},
    {"decomfl_train_cold", 61, 468, {7946, 7549, 7549, 61}},
    {"drisspg_trimmed", 14, 14, {28, 4, 4, 14}},
    {"kkaitlyn_compile_annotations", 30, 378, {2998, 2753, 2753, 3}},
    {"kkaitlyn_fullstep_empty_cache", 1010, 1525, {6770, 5894, 5894, 782, 430}},
    {"magma_train_warm", 216, 455, {1721, 1721, 1721}},
    {"mosaic_synthetic", 5, 17, {520, 0, 520}},
    {"muduard_no_trace", 255, 2140, {}},
    {"nesta_oom_cold", 120, 307, {576, 295, 295, 126, 6, 0, 1}},
    {"octree_inference_warm", 51, 452, {1491, 1129, 1129, 48}},
    {"selectn_warm_torch21", 82, 415, {1497, 1493, 1493, 13}},
    {"silmont_cold", 9, 20, {36, 26, 26, 9}},
    {"silmont_forward_bf16", 43, 178, {937, 937, 937}},
    {"uoft_before_train_cold", 21, 142, {139, 0, 0, 21, 0, 2}},
    {"verl_private_pools_no_trace", 127, 638, {}},
    {"wedson_128_inference", 98, 230, {1280, 1280, 1280}},
    {"wedson_128_training", 377, 918, {6526, 6305, 6305}},
    {"wedson_512_training", 400, 1041, {7591, 7370, 7370, 1}},
    {"yiyi_oom_torch20", 176, 463, {0, 0, 0, 0, 0, 1}},
};
constexpr EventKind kCounted[] = {
    EventKind::kAlloc,        EventKind::kFree,        EventKind::kFreeCompleted,
    EventKind::kSegmentAlloc, EventKind::kSegmentFree, EventKind::kSnapshot,
    EventKind::kOom,
};

class RealSnapshots : public testing::Test {
 protected:
  void SetUp() override {
    const char* shared = std::getenv("MEMREPLAY_SHARED");
    if (shared == nullptr) GTEST_SKIP() << "MEMREPLAY_SHARED is not set: no real snapshots here";
    folder_ = std::string(shared) + "/data/snapshots/";
  }
  absl::StatusOr<Trace> Open(const std::string& name) {
    return OpenTrace(folder_ + name + ".pickle");
  }
  std::string folder_;
};

TEST_F(RealSnapshots, AllAreReadAndCountedRight) {
  for (const Expectation& expected : kFiles) {
    SCOPED_TRACE(expected.file);
    const absl::StatusOr<Trace> trace = Open(expected.file);
    ASSERT_TRUE(trace.ok()) << trace.status();
    std::map<EventKind, size_t> seen;
    size_t segments = 0, blocks = 0, events = 0, wanted = 0;
    for (const DeviceTrace& device : trace->devices) {
      for (const Event& event : device.events) {
        ++seen[event.kind];
        EXPECT_LT(event.stream, trace->streams.size());
        EXPECT_EQ(event.scratch, 0);
      }
      events += device.events.size();
      segments += device.final_state.size();
      for (const SegmentInfo& segment : device.final_state) blocks += segment.blocks.size();
    }
    EXPECT_EQ(segments, expected.segments);
    EXPECT_EQ(blocks, expected.blocks);
    for (size_t i = 0; i < std::size(kCounted); ++i) {
      EXPECT_EQ(seen[kCounted[i]], expected.actions[i]) << EventKindName(kCounted[i]);
      wanted += expected.actions[i];
    }
    EXPECT_EQ(events, wanted);
    EXPECT_EQ(trace->layout.pickle_protocol, 4);
    EXPECT_EQ(trace->diagnostics.count(DiagnosticKind::kNoTrace), wanted == 0 ? 1u : 0u);
    EXPECT_EQ(trace->diagnostics.count(DiagnosticKind::kUnknownKey), 0u);
    // Only the synthetic file contradicts itself.
    EXPECT_EQ(trace->diagnostics.count(DiagnosticKind::kSegmentSumMismatch),
              std::string(expected.file) == "mosaic_synthetic" ? 5u : 0u);
  }
}

TEST_F(RealSnapshots, OutOfMemoryCarriesTheDriversFreeBytes) {
  const absl::StatusOr<Trace> trace = Open("nesta_oom_cold");
  ASSERT_TRUE(trace.ok()) << trace.status();
  const Event& oom = trace->devices[0].events[1117];
  EXPECT_EQ(oom.kind, EventKind::kOom);
  EXPECT_EQ(oom.size, Bytes(402653184));
  EXPECT_EQ(oom.address, Address(264634368));
}

TEST_F(RealSnapshots, LayoutsDifferByRelease) {
  const absl::StatusOr<Trace> torch20 = Open("yiyi_oom_torch20");
  ASSERT_TRUE(torch20.ok());
  EXPECT_FALSE(torch20->layout.has_block_addresses);
  EXPECT_TRUE(torch20->layout.has_block_history);
  EXPECT_EQ(torch20->diagnostics.count(DiagnosticKind::kNoBlockAddresses), 463u);
  EXPECT_NE(torch20->devices[0].final_state[0].blocks[0].stack, 0u);

  const absl::StatusOr<Trace> torch21 = Open("selectn_warm_torch21");
  ASSERT_TRUE(torch21.ok());
  EXPECT_FALSE(torch21->layout.has_time_us);
  EXPECT_TRUE(torch21->devices[0].time_us.empty());
  EXPECT_FALSE(torch21->layout.has_allocator_settings);

  const absl::StatusOr<Trace> torch210 = Open("bcrafton_train_warm");
  ASSERT_TRUE(torch210.ok());
  EXPECT_TRUE(torch210->layout.has_user_metadata);
  EXPECT_TRUE(torch210->layout.has_graph_capture_record_stream_reuse);
  EXPECT_EQ(torch210->annotations.size(), 2u);
}

TEST_F(RealSnapshots, PoolsSettingsAndDevices) {
  const absl::StatusOr<Trace> verl = Open("verl_private_pools_no_trace");
  ASSERT_TRUE(verl.ok()) << verl.status();
  EXPECT_EQ(verl->pools.size(), 3u);
  const absl::StatusOr<Trace> albi = Open("albi2_settings_two_devices");
  ASSERT_TRUE(albi.ok()) << albi.status();
  EXPECT_EQ(albi->devices.size(), 1u);  // whatever its name says
  ASSERT_TRUE(albi->settings.has_value());
  EXPECT_EQ(albi->settings->conf, "expandable_segments:True,max_split_size_mb:128");
  EXPECT_EQ(albi->settings->max_split_size, 134217728);
  EXPECT_EQ(albi->settings->expandable_segments, true);
  EXPECT_EQ(albi->settings->roundup_power2_divisions.size(), 16u);
  const absl::StatusOr<Trace> bare = Open("muduard_no_trace");
  ASSERT_TRUE(bare.ok()) << bare.status();
  ASSERT_EQ(bare->devices.size(), 1u);
  EXPECT_EQ(bare->devices[0].device, 1);
}

}  // namespace
}  // namespace memreplay

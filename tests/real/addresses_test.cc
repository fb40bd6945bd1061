// The order in which drivers hand addresses out, held against real recordings. See
// exact_replay_test.cc for where they come from.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "sim/device/simulated_device.h"
#include "sim/recording/replay_settings.h"
#include "sim/recording/start_state.h"
#include "trace/formats/open_trace.h"
#include "trace/schedule/schedule.h"

namespace memreplay {
namespace {

struct Score {
  uint64_t pairs = 0;  // of a new segment and one that is there
  uint64_t in_order = 0;
  uint64_t segments = 0;  // new ones
  uint64_t in_place = 0;  // between the two that they lay between
};

// The recorded segments alone, on a device that is left to itself.
void Add(const Schedule& schedule, const MemoryState& start, AddressOrder order, Score* score) {
  SimulatedDevice device(SimulatedDevice::Options{.capacity = std::nullopt, .order = order});
  std::map<Address, Address> place;  // recorded -> simulated
  std::vector<Piece> pieces;
  for (const SegmentInfo& segment : start) pieces.push_back({segment.address, segment.total_size});
  const auto begun = device.AllocateStart(pieces);
  ASSERT_TRUE(begun.has_value());
  for (size_t i = 0; i < pieces.size(); ++i) place[pieces[i].address] = (*begun)[i];
  for (const Event& event : schedule.recorded()) {
    if (event.kind == EventKind::kSegmentFree) {
      const auto found = place.find(event.address);
      if (found == place.end()) continue;
      device.FreeSegment(found->second, event.size);
      place.erase(found);
    } else if (event.kind == EventKind::kSegmentAlloc) {
      const Address address = *device.AllocateSegment(event.size);
      std::pair<Address, Address> below, above;  // nearest: recorded, simulated
      for (const auto& [recorded, simulated] : place) {
        ++score->pairs;
        score->in_order += (recorded < event.address) == (simulated < address);
        if (recorded < event.address) below.first = simulated;
        if (recorded > event.address && above.first.is_null()) above.first = simulated;
        if (simulated < address && simulated > below.second) below.second = simulated;
        if (simulated > address && (above.second.is_null() || simulated < above.second)) {
          above.second = simulated;
        }
      }
      ++score->segments;
      score->in_place += below.first == below.second && above.first == above.second;
      place[event.address] = address;
    }
  }
}

std::string Told(const Score& score) {
  char text[200];
  std::snprintf(text, sizeof text, "%.1f %% of pairs in order, %.1f %% of %u segments in place",
                100.0 * static_cast<double>(score.in_order) / static_cast<double>(score.pairs),
                100.0 * static_cast<double>(score.in_place) / static_cast<double>(score.segments),
                static_cast<unsigned>(score.segments));
  return text;
}

TEST(RealAddresses, FollowTheRule) {
  const char* shared = std::getenv("MEMREPLAY_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "MEMREPLAY_SHARED is not set: no real snapshots here";
  Score chunks, upwards;
  for (const char* file : {"charan_train_warm", "drisspg_trimmed", "kkaitlyn_fullstep_empty_cache",
                           "mercury_empty_cache_warm", "nesta_oom_cold", "octree_inference_warm",
                           "octree_peso_retries", "selectn_retries_torch21", "selectn_warm_torch21",
                           "silmont_cold", "uoft_before_train_cold"}) {
    auto opened = OpenTrace(std::string(shared) + "/data/snapshots/" + file + ".pickle");
    ASSERT_TRUE(opened.ok()) << opened.status();
    const auto trace = std::make_shared<const Trace>(*std::move(opened));
    const Schedule schedule = Schedule::Build(trace, 0);
    const ReplaySettings settings = *ResolveSettings(*trace, {});
    EXPECT_EQ(settings.order, AddressOrder::kChunksDownwards) << file;
    const MemoryState start =
        RebuildStartState(schedule, settings.recorded_config, *settings.torch.profile).segments;
    Add(schedule, start, AddressOrder::kChunksDownwards, &chunks);
    Add(schedule, start, AddressOrder::kUpwards, &upwards);
  }
  std::printf("chunks downwards: %s\nupwards: %s\n", Told(chunks).c_str(), Told(upwards).c_str());
  EXPECT_GT(chunks.in_order * 100, chunks.pairs * 98);
  EXPECT_GT(chunks.in_place * 10, chunks.segments * 6);
  EXPECT_GT(chunks.in_order, upwards.in_order * 2);
}

TEST(RealAddresses, WindowsGoesUpwards) {
  const char* shared = std::getenv("MEMREPLAY_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "MEMREPLAY_SHARED is not set: no real snapshots here";
  auto opened = OpenTrace(std::string(shared) + "/data/snapshots/decomfl_train_cold.pickle");
  ASSERT_TRUE(opened.ok()) << opened.status();
  const auto trace = std::make_shared<const Trace>(*std::move(opened));
  EXPECT_EQ(ResolveSettings(*trace, {})->order, AddressOrder::kUpwards);
  Score upwards;
  Add(Schedule::Build(trace, 0), {}, AddressOrder::kUpwards, &upwards);
  EXPECT_GT(upwards.in_order * 100, upwards.pairs * 85);
}

}  // namespace
}  // namespace memreplay

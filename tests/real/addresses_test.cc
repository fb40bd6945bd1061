// Checks the order in which drivers hand addresses out against real recordings;
// exact_replay_test.cc says where they come from.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "hardware/driver_addresses.h"
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

using Places = std::map<Address, Address>;  // recorded -> simulated

// Scores a segment that was recorded at `recorded` and got `address`, and adds it to `place`.
void AddSegment(Address recorded, Address address, Places* place, Score* score) {
  std::pair<Address, Address> below, above;  // nearest: recorded, simulated
  for (const auto& [other, simulated] : *place) {
    ++score->pairs;
    score->in_order += (other < recorded) == (simulated < address);
    if (other < recorded) below.first = simulated;
    if (other > recorded && above.first.is_null()) above.first = simulated;
    if (simulated < address && simulated > below.second) below.second = simulated;
    if (simulated > address && (above.second.is_null() || simulated < above.second)) {
      above.second = simulated;
    }
  }
  ++score->segments;
  score->in_place += below.first == below.second && above.first == above.second;
  (*place)[recorded] = address;
}

// Adds the score of the recorded segments alone, on a device that is left to itself.
void Add(const Schedule& schedule, const MemoryState& start, AddressOrder order, Score* score) {
  SimulatedDevice device(SimulatedDevice::Options{.capacity = std::nullopt, .order = order});
  Places place;
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
      AddSegment(event.address, *device.AllocateSegment(event.size), &place, score);
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

// Returns the score if the first kernel is launched before the first segment that lies below the
// first of all.
Score BelowFirstKernel(const Schedule& schedule, Bytes below) {
  DriverAddresses addresses(SimulatedDevice::kSegmentBase.value(),
                            SimulatedDevice::kSegmentEnd.value(), AddressOrder::kUpwards,
                            below.value());
  Places place;
  Score score;
  Address first;
  for (const Event& event : schedule.recorded()) {
    if (event.kind == EventKind::kSegmentFree) {
      addresses.Give(place[event.address].value(), event.size.value());
      place.erase(event.address);
    } else if (event.kind == EventKind::kSegmentAlloc) {
      if (first.is_null()) first = event.address;
      if (event.address < first) addresses.FirstKernel();
      AddSegment(event.address, Address(*addresses.Take(event.size.value())), &place, &score);
    }
  }
  return score;
}

// Returns how far below the first segment the lowest one is.
Bytes BelowFirst(const Schedule& schedule) {
  Address first, lowest;
  for (const Event& event : schedule.recorded()) {
    if (event.kind != EventKind::kSegmentAlloc) continue;
    if (first.is_null()) first = lowest = event.address;
    lowest = std::min(lowest, event.address);
  }
  return first - lowest;
}

// Checks all recordings there that were made on Windows or WSL and begin with the first segment.
// The folder may have others than those that the catalogue names.
TEST(RealAddresses, OnWindowsTheBottomIsTheDriversUntilTheFirstKernel) {
  const char* shared = std::getenv("MEMREPLAY_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "MEMREPLAY_SHARED is not set: no real snapshots here";
  Score lowest_first, rule, record;
  std::set<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(shared) + "/data/snapshots")) {
    if (entry.path().extension() == ".pickle") files.insert(entry.path());
  }
  for (const auto& file : files) {
    auto opened = OpenTrace(file.string());
    if (!opened.ok() || opened->devices.empty()) continue;
    const auto trace = std::make_shared<const Trace>(*std::move(opened));
    const auto settings = ResolveSettings(*trace, {});
    const Schedule schedule = Schedule::Build(trace, 0);
    if (!settings.ok() || settings->order != AddressOrder::kUpwards ||
        schedule.recorded().empty() || schedule.recorded()[0].kind != EventKind::kSegmentAlloc) {
      continue;
    }
    const Bytes below = BelowFirst(schedule);
    if (below == Bytes()) continue;
    const Score own = BelowFirstKernel(schedule, below);
    std::printf("%s, %u MiB below the first: %s; lowest first: %s\n", file.filename().c_str(),
                static_cast<unsigned>(below / MiB(1)), Told(own).c_str(),
                Told(BelowFirstKernel(schedule, Bytes())).c_str());
    EXPECT_GT(own.in_order * 100, own.pairs * 97) << file;
    EXPECT_GT(own.in_place * 100, own.segments * 90) << file;
    for (const auto& [score, bytes] : {std::pair(&lowest_first, Bytes()),
                                       {&rule, below},
                                       {&record, Bytes(DriverAddresses::kBelowFirstKernel)}}) {
      const Score one = BelowFirstKernel(schedule, bytes);
      score->pairs += one.pairs;
      score->in_order += one.in_order;
      score->segments += one.segments;
      score->in_place += one.in_place;
    }
  }
  std::printf("all: %s; %u MiB in each: %s; lowest first: %s\n", Told(rule).c_str(),
              static_cast<unsigned>(DriverAddresses::kBelowFirstKernel >> 20), Told(record).c_str(),
              Told(lowest_first).c_str());
  EXPECT_GE(rule.segments, 61u) << "decomfl_train_cold";
  EXPECT_GT(rule.in_place, lowest_first.in_place);
  EXPECT_GT(record.in_place, lowest_first.in_place);
}

}  // namespace
}  // namespace memreplay

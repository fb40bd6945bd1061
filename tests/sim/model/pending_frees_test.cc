// Tests frees that wait for other streams: only streams that progressed are polled, and nothing
// shows it.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "sim/device/simulated_device.h"
#include "sim/device/watched_device.h"
#include "sim/model/caching_allocator.h"
#include "sim/settings/torch_profile.h"

namespace memreplay {
namespace {

// A device that may progress at any time, as a GPU does: every stream is polled at every request.
class UntoldDevice final : public ForwardingDevice {
 public:
  explicit UntoldDevice(Device& device) : ForwardingDevice(device) {}
  bool CompletionIsReported() const override { return false; }
};

class Keeper final : public Observer {
 public:
  void OnEvent(const Event& event) override { events.push_back(event); }
  std::vector<Event> events;
};

struct Ran {
  std::vector<Event> events;
  RuleCounts rules;
};

Ran RunRandom(uint64_t seed, bool told, StreamOrder order) {
  constexpr uint32_t kStreams = 12;
  SimulatedDevice::Options options;
  options.capacity = MiB(200);
  options.explicit_completion = seed % 3 != 0;
  SimulatedDevice device(options);
  UntoldDevice untold(device);
  CachingAllocatorOptions allocator_options;
  allocator_options.stream_order = order;
  allocator_options.pools = {PoolId{}, PoolId{0, 1}};
  for (uint32_t i = 1; i < kStreams; ++i) allocator_options.streams.emplace_back(i * 7);
  AllocatorConfig config;
  config.expandable_segments = seed % 2 == 0;
  CachingAllocator allocator(DefaultTorchProfile(), config,
                             told ? static_cast<Device&>(device) : untold, allocator_options);
  std::mt19937_64 random(seed);
  Keeper keeper;
  std::vector<AllocationId> live;
  for (AllocationId id = 0; id < 600; ++id) {
    Event request;
    request.stream = static_cast<uint32_t>(random() % kStreams);
    const uint64_t dice = random() % 100;
    if (dice < 45 || live.empty()) {
      request.kind = EventKind::kAlloc;
      request.id = id;
      request.size = Bytes(512 + random() % (uint64_t{1} << (10 + random() % 15)));
      live.push_back(id);
    } else if (dice < 70) {
      request.kind = EventKind::kRecordStream;
      request.id = live[random() % live.size()];
    } else if (dice < 88) {
      request.kind = EventKind::kFree;
      const size_t at = random() % live.size();
      request.id = live[at];
      live.erase(live.begin() + static_cast<ptrdiff_t>(at));
    } else if (dice < 96) {
      request.kind = EventKind::kStreamDone;
    } else if (dice < 97) {
      request.kind = EventKind::kEmptyCache;
    } else {
      request.kind = dice < 99 ? EventKind::kPoolBegin : EventKind::kPoolEnd;
      request.pool = 1;
    }
    (void)allocator.Apply(request, keeper);
    allocator.CheckInvariants();
  }
  return {keeper.events, allocator.rule_counts()};
}

TEST(PendingFrees, StreamsThatDidNotProgressNeedNoLook) {
  uint64_t pending = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    for (const StreamOrder order : {StreamOrder::kAscending, StreamOrder::kPyTorchHash}) {
      const Ran told = RunRandom(seed, true, order);
      const Ran polled = RunRandom(seed, false, order);
      ASSERT_EQ(told.events, polled.events) << seed;
      ASSERT_EQ(told.rules, polled.rules) << seed;
      pending += told.rules[static_cast<size_t>(Rule::kEventPending)];
    }
  }
  EXPECT_GT(pending, 1000u);
}

}  // namespace
}  // namespace memreplay

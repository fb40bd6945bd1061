#include "sim/workload/lifetimes.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

namespace memreplay {
namespace {

Event Make(EventKind kind, uint64_t handle, uint64_t size = 0, uint32_t stream = 0) {
  Event event;
  event.kind = kind;
  event.address = Address(handle);
  event.size = Bytes(size);
  event.stream = stream;
  return event;
}

std::vector<Lifetime> OfProgram(std::vector<Event> events, Completion completion) {
  auto trace = std::make_shared<Trace>();
  trace->is_program = true;
  trace->completion = completion;
  trace->streams = {StreamHandle(0), StreamHandle(1)};
  trace->devices.emplace_back().events = std::move(events);
  return LifetimesOf(Schedule::Build(trace, 0));
}

TEST(LifetimesOf, FromAllocToFreeOrTheEnd) {
  const auto lifetimes =
      OfProgram({Make(EventKind::kAlloc, 1, 1000), Make(EventKind::kAlloc, 2, 512),
                 Make(EventKind::kFree, 1), Make(EventKind::kAlloc, 3, 1)},
                Completion::kAtOnce);
  ASSERT_EQ(lifetimes.size(), 3u);
  EXPECT_EQ(lifetimes[0].begin, 1u);
  EXPECT_EQ(lifetimes[0].end, 3u);
  EXPECT_EQ(lifetimes[0].requested, Bytes(1000));
  EXPECT_EQ(lifetimes[0].rounded, Bytes(1024));
  EXPECT_EQ(lifetimes[1].end, 5u);
  EXPECT_EQ(lifetimes[2].rounded, Bytes(512));
}

TEST(LifetimesOf, AnotherStreamProlongsALife) {
  const std::vector<Event> events = {
      Make(EventKind::kAlloc, 1, 512),
      Make(EventKind::kRecordStream, 1, 0, 1),
      Make(EventKind::kStreamDone, 0, 0, 1),  // before the free: does not count
      Make(EventKind::kFree, 1),
      Make(EventKind::kAlloc, 2, 512),
      Make(EventKind::kStreamDone, 0, 0, 1),
      Make(EventKind::kFree, 2)};
  EXPECT_EQ(OfProgram(events, Completion::kExplicit)[0].end, 6u);
  EXPECT_EQ(OfProgram(events, Completion::kAtOnce)[0].end, 4u);
}

// A recording that begins with 12 MiB in use and in which 1 GiB is refused.
TEST(LifetimesOf, OfARecordingsStartAndOfWhatItRefused) {
  auto trace = std::make_shared<Trace>();
  trace->streams = {StreamHandle(0)};
  DeviceTrace& device = trace->devices.emplace_back();
  constexpr uint64_t kBase = 0x500000000000;
  Event oom = Make(EventKind::kOom, 1 << 20, uint64_t{1} << 30);
  device.events = {oom, Make(EventKind::kFree, kBase, 12 << 20),
                   Make(EventKind::kFreeCompleted, kBase, 12 << 20)};
  const auto lifetimes = LifetimesOf(Schedule::Build(trace, 0));
  ASSERT_EQ(lifetimes.size(), 1u);  // what was refused was never in use
  EXPECT_EQ(lifetimes[0].begin, 0u);
  EXPECT_EQ(lifetimes[0].requested, MiB(12));
  EXPECT_EQ(PeakLiveOf(lifetimes).requested, MiB(12));
}

}  // namespace
}  // namespace memreplay

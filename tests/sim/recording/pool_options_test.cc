#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "sim/recording/hypotheses.h"
#include "tests/sim/support/made_recording.h"

namespace memreplay {
namespace {

using testing::Made;

Event Make(EventKind kind, AllocationId id, Bytes size, uint16_t pool = 0) {
  Event event;
  event.kind = kind;
  event.id = id;
  event.size = size;
  event.pool = pool;
  return event;
}

// Fills a pool that does not split its segments, which shows in the second block of 3 MiB. It is
// released in the end and filled no more.
std::shared_ptr<Trace> Recorded(const Made& made, bool is_gone) {
  Event pool = Make(EventKind::kPoolCreate, kNoAllocation, Bytes(), 1);
  pool.set_pool_flags(kPoolNoSplit);
  std::vector<Event> requests = {pool, Make(EventKind::kPoolBegin, kNoAllocation, Bytes(), 1)};
  for (AllocationId id = 1; id < 5; ++id) requests.push_back(Make(EventKind::kAlloc, id, MiB(3)));
  requests.push_back(Make(EventKind::kFree, 2, Bytes()));
  requests.push_back(Make(EventKind::kAlloc, 6, MiB(2)));
  requests.push_back(Make(EventKind::kPoolEnd, kNoAllocation, Bytes(), 1));
  requests.push_back(Make(EventKind::kPoolRelease, kNoAllocation, Bytes(), 1));
  for (AllocationId id = 7; id < 11; ++id) requests.push_back(Make(EventKind::kAlloc, id, MiB(3)));
  if (is_gone) {
    for (const AllocationId id : {1, 3, 4, 6}) {
      requests.push_back(Make(EventKind::kFree, id, Bytes()));
    }
    requests.push_back(Make(EventKind::kPoolRelease, kNoAllocation, Bytes(), 1));
    requests.push_back(Make(EventKind::kEmptyCache, kNoAllocation, Bytes()));
  }
  return std::make_shared<Trace>(testing::RecordingOf(requests, made));
}

RecordingFollowed Follow(const Schedule& schedule, const Made& made) {
  return FollowRecording(schedule, made.config, testing::ProfileOf(made));
}

TEST(FindPoolOptions, APoolThatDoesNotSplitIsFound) {
  for (const bool is_gone : {false, true}) {
    const Made made = {.torch = "2.14", .pools = 1};
    const std::shared_ptr<Trace> trace = Recorded(made, is_gone);
    ASSERT_TRUE(MayHavePoolOptions(*trace));
    const Schedule plain = Schedule::Build(trace, 0);
    const RecordingFollowed without = Follow(plain, made);
    ASSERT_FALSE(without.exact);
    const std::optional<Explanation> found =
        FindPoolOptions({trace, 0, plain, made.config, testing::ProfileOf(made), without});
    ASSERT_TRUE(found.has_value()) << is_gone;
    EXPECT_EQ(found->pools.flags, (std::vector<uint64_t>{0, kPoolNoSplit}));
    EXPECT_NE(found->notes.at(0).find("1 MemPool was made with no_split=True"), std::string::npos);
    EXPECT_TRUE(Follow(Schedule::Build(trace, 0, found->pools), made).exact);
  }
}

TEST(FindPoolOptions, ANoteSaysIt) {
  const Made made = {.torch = "2.14", .pools = 1};
  const std::shared_ptr<Trace> trace = Recorded(made, /*is_gone=*/true);
  const auto noted = [&](const char* options, uint64_t pool) {
    trace->devices[0].notes = {{NoteKind::kPool, trace->strings.Intern(options), 0, Address(pool)}};
    return Schedule::Build(trace, 0);
  };
  const Schedule schedule = noted("no_split,use_on_oom", 1);
  EXPECT_EQ(schedule.pool_flags(), (std::vector<uint64_t>{0, kPoolNoSplit}));
  EXPECT_TRUE(Follow(schedule, made).exact);
  const Schedule other = noted("use_on_oom", 1);
  EXPECT_TRUE(other.pool_flags().empty());
  EXPECT_FALSE(Follow(other, made).exact);
  EXPECT_TRUE(noted("no_split", 2).pool_flags().empty());  // a pool without events
}

TEST(FindPoolOptions, NothingIsSaidOfAReleaseThatSplits) {
  const Made made = {.torch = "2.9", .pools = 1};
  const std::shared_ptr<Trace> trace = Recorded({.torch = "2.14", .pools = 1}, false);
  const Schedule plain = Schedule::Build(trace, 0);
  const RecordingFollowed without = Follow(plain, made);
  ASSERT_FALSE(without.exact);
  EXPECT_FALSE(FindPoolOptions({trace, 0, plain, made.config, testing::ProfileOf(made), without}));
}

}  // namespace
}  // namespace memreplay

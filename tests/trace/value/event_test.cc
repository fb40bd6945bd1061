#include "trace/value/event.h"

#include <gtest/gtest.h>

#include "trace/value/memory_state.h"

namespace memreplay {
namespace {

TEST(EventKindName, GoesThereAndBack) {
  for (int number = 0; number <= static_cast<int>(EventKind::kSnapshot); ++number) {
    const auto kind = static_cast<EventKind>(number);
    EXPECT_EQ(EventKindFromName(EventKindName(kind)), kind);
  }
  EXPECT_EQ(EventKindName(EventKind::kFree), "free_requested");
  EXPECT_EQ(EventKindFromName("unknown"), std::nullopt);
}

TEST(BlockStateName, GoesThereAndBack) {
  for (const BlockState state :
       {BlockState::kAllocated, BlockState::kPendingFree, BlockState::kInactive}) {
    EXPECT_EQ(BlockStateFromName(BlockStateName(state)), state);
  }
  EXPECT_EQ(BlockStateFromName("unknown"), std::nullopt);
}

TEST(Event, NumbersBelongToKinds) {
  Event event;
  event.set_mark(MarkKind::kLabel);
  EXPECT_TRUE(event.is_mark(MarkKind::kLabel));
  EXPECT_FALSE(event.is_mark(MarkKind::kPhase));
  event.set_oom(MiB(3));
  EXPECT_EQ(event.kind, EventKind::kOom);
  EXPECT_EQ(event.device_free(), MiB(3));
  EXPECT_FALSE(event.is_mark(MarkKind::kLabel));
  event.set_fail_count(2);
  EXPECT_EQ(event.fail_count(), 2u);
  EXPECT_DEATH((void)event.device_free(), "broken invariant: fail_next");
}

TEST(Event, AMarkOfAnotherNumberIsNoEnumerator) {
  Event event;
  event.size = Bytes(uint64_t{1} << 40);
  EXPECT_EQ(static_cast<int>(event.mark()), 255);
}

}  // namespace
}  // namespace memreplay

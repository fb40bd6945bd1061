// The rules of the caching allocator by name, so that a corpus of schedules can show which ones it
// reached. Each branch that decides something has one row.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace memreplay {

#define MEMREPLAY_RULES(X)                                                \
  X(kFreeBlockFound, "free_block_found")                                  \
  X(kFreeBlockNone, "free_block_none")                                    \
  X(kOversizeBlockForSmaller, "oversize_block_kept_from_smaller_request") \
  X(kOversizeBlockTooLarge, "oversize_block_over_rounding_limit")         \
  X(kExpandableRoomWalk, "expandable_room_walk")                          \
  X(kExpandableSkipped, "expandable_blocks_skipped_while_off")            \
  X(kSplitSmall, "split_small_pool")                                      \
  X(kSplitLarge, "split_large_pool")                                      \
  X(kSplitExpandable, "split_expandable")                                 \
  X(kNoSplitRemainder, "no_split_remainder_too_small")                    \
  X(kNoSplitOversize, "no_split_oversize")                                \
  X(kNoSplitPool, "no_split_pool")                                        \
  X(kSegmentAlloc, "segment_alloc")                                       \
  X(kSegmentAllocFailed, "segment_alloc_failed")                          \
  X(kLimitRefused, "memory_limit_refused")                                \
  X(kGarbageCollected, "garbage_collected")                               \
  X(kGarbageBelowThreshold, "garbage_collection_below_threshold")         \
  X(kGarbageSecondRound, "garbage_collection_second_round")               \
  X(kReleaseOneOversize, "release_available_one_block")                   \
  X(kReleaseSeveralOversize, "release_available_several_blocks")          \
  X(kReleaseAvailableShort, "release_available_not_enough")               \
  X(kFlushRetry, "flush_and_retry")                                       \
  X(kFlushRetryServed, "flush_and_retry_served")                          \
  X(kFlushSkippedInPool, "flush_skipped_in_pool_context")                 \
  X(kUseOnOom, "use_on_oom_pool_served")                                  \
  X(kOutOfMemory, "out_of_memory")                                        \
  X(kRejectedEarly, "rejected_by_throw_on_cudamalloc_oom")                \
  X(kMergePrev, "merge_with_previous")                                    \
  X(kMergeNext, "merge_with_next")                                        \
  X(kFreeAtOnce, "free_at_once")                                          \
  X(kFreeWaits, "free_waits_for_streams")                                 \
  X(kFreeDeferred, "free_deferred_in_pool_context")                       \
  X(kEventDone, "stream_event_done")                                      \
  X(kEventPending, "stream_event_pending")                                \
  X(kDeferredHandled, "deferred_free_handled")                            \
  X(kCapturedUseDropped, "captured_use_dropped")                          \
  X(kReserve, "expandable_reserve")                                       \
  X(kMap, "expandable_map")                                               \
  X(kMapExtends, "expandable_map_extends_free_block")                     \
  X(kMapSeveral, "expandable_map_several_ranges")                         \
  X(kMapFailed, "expandable_map_failed")                                  \
  X(kUnmap, "expandable_unmap")                                           \
  X(kUnmapNothing, "expandable_unmap_no_whole_page")                      \
  X(kUnmapHead, "expandable_unmap_keeps_head")                            \
  X(kUnmapTail, "expandable_unmap_keeps_tail")                            \
  X(kReleaseReservation, "expandable_release_reservation")                \
  X(kPrivatePoolUsed, "private_pool_used")                                \
  X(kPrivatePoolFlushed, "private_pool_flushed")                          \
  X(kPrivatePoolErased, "private_pool_erased")                            \
  X(kEmptyCache, "empty_cache")                                           \
  X(kEmptyCacheInPool, "empty_cache_in_pool_context")                     \
  X(kDivisionRounding, "roundup_power2_division")

enum class Rule : uint8_t {
#define MEMREPLAY_RULE_ENUM(name, text) name,
  MEMREPLAY_RULES(MEMREPLAY_RULE_ENUM)
#undef MEMREPLAY_RULE_ENUM
      kCount
};

inline constexpr size_t kRuleCount = static_cast<size_t>(Rule::kCount);

inline constexpr std::array<std::string_view, kRuleCount> kRuleNames = {
#define MEMREPLAY_RULE_NAME(name, text) text,
    MEMREPLAY_RULES(MEMREPLAY_RULE_NAME)
#undef MEMREPLAY_RULE_NAME
};

// How often each rule fired.
using RuleCounts = std::array<uint64_t, kRuleCount>;

}  // namespace memreplay

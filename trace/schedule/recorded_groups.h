// Groups recorded events by the request they belong to. PyTorch records an alloc after its effects
// (segments released and obtained), a free before its effects, and empty_cache not at all.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "trace/schedule/event_view.h"
#include "trace/value/event.h"
#include "trace/value/units.h"

namespace memreplay {

// The relation of an event to the requests around it.
enum class EventRole : uint8_t {
  kRequest,         // alloc, oom, free_requested, and requests that PyTorch does not record
  kOwnCompletion,   // free_completed directly after its free_requested
  kLateCompletion,  // free_completed in the course of a later request
  kImpliedFree,     // free_completed of a block whose free was never requested
  kSegmentEffect,   // segment_alloc, segment_free, segment_map, segment_unmap
  kAside,           // belongs to no request: snapshots and contradictory events
};

// A request of a recording with the effects that belong to it.
struct RecordedGroup {
  static constexpr uint32_t kInferredEmptyCache = 0xffffffff;
  uint32_t begin = 0;  // events [begin, end)
  uint32_t end = 0;
  uint32_t request = 0;  // index of the request's own event, or kInferredEmptyCache
};

// What settings mean for the groups.
struct SettingsFacts {
  // True if settings allow a malloc to release segments although the driver did not refuse (garbage
  // collection), or only some of them (max_split_size).
  bool releases_may_be_partial = false;
  // True if the script limited PyTorch to a share of the GPU, so that mallocs may be refused at any
  // size.
  bool is_limited = false;
  // Blocks of this size or more do not serve smaller requests, nor requests that are much smaller
  // than the block.
  std::optional<Bytes> max_split_size;
  // The minimum number of steps, over all sizes, into which roundup_power2_divisions divides the
  // range between two powers of two; 0: requests are rounded to 512 bytes.
  uint64_t roundup_divisions = 0;
};

// Facts about the whole recording that determine the groups.
struct GroupingFacts {
  Bytes reserved_at_start;  // bytes of the segments that existed before the first event
  Bytes peak_reserved;      // maximum over the trace
  SettingsFacts settings;   // at the start
  // Other settings, each from an event on; ascending.
  std::vector<std::pair<uint64_t, SettingsFacts>> changes;
  // The page size of expandable segments in large pools; zero: unknown.
  Bytes large_page = MiB(20);
  // False if the trace records its own empty_cache requests, so that none is inferred.
  bool infer_empty_cache = true;
  // True if a late completion has the stack of the malloc or empty_cache that found it.
  bool completions_have_stacks = false;
};

// Groups events in recorded order. Releases (segment_free, segment_unmap) belong to the malloc that
// they precede, unless
//   * the malloc got no new memory and did not run out, so that there was no reason for them;
//   * their stack is not that of the malloc (PyTorch records the malloc's stack on both);
//   * a released segment or pages, or the block freed just before, would have served the malloc if
//     still present (torch.backends.cudnn.benchmark calls empty_cache() in the middle of an
//     operator);
//   * there are no stacks, and the device held as much as the malloc required at another time, so
//     that the driver had no reason to refuse.
// Releases that do not belong to a malloc, and late completions of another stack or without a later
// malloc, are an empty_cache. `roles` has one entry per event. Passes each group to `take`.
// O(events).
void GroupRecorded(const EventView& events, absl::Span<const EventRole> roles,
                   const GroupingFacts& facts, absl::FunctionRef<void(const RecordedGroup&)> take);

}  // namespace memreplay

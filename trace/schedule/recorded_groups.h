// Which recorded events belong to which request. PyTorch records an alloc after
// the effects it had (segments released and obtained), a free before them, and
// empty_cache not at all.
#ifndef MEMREPLAY_TRACE_SCHEDULE_RECORDED_GROUPS_H_
#define MEMREPLAY_TRACE_SCHEDULE_RECORDED_GROUPS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "trace/schedule/event_view.h"
#include "trace/value/event.h"
#include "trace/value/units.h"

namespace memreplay {

// What an event is to the requests around it.
enum class EventRole : uint8_t {
  kRequest,         // alloc, oom, free_requested, and requests that PyTorch does not record
  kOwnCompletion,   // free_completed directly after its free_requested
  kLateCompletion,  // free_completed in the course of a later request
  kImpliedFree,     // free_completed of a block whose free was never requested
  kSegmentEffect,   // segment_alloc, segment_free, segment_map, segment_unmap
  kAside,           // belongs to no request: snapshot, what contradicts the rest
};

// A request of a recording with the effects that belong to it.
struct RecordedGroup {
  static constexpr uint32_t kInferredEmptyCache = 0xffffffff;
  uint32_t begin = 0;  // events [begin, end)
  uint32_t end = 0;
  uint32_t request = 0;  // index of the request's own event, or kInferredEmptyCache
};

// What grouping needs to know of the whole recording.
struct GroupingFacts {
  Bytes reserved_at_start;  // bytes of the segments that were there before the first event
  Bytes peak_reserved;      // the most at any moment of the trace
  // Settings under which a malloc may release segments without the driver
  // having refused (garbage collection), or only some of them (max_split_size).
  bool releases_may_be_partial = false;
  // Blocks of this size or more serve no smaller requests, nor those much smaller than they are.
  std::optional<Bytes> max_split_size;
  // Into how many steps roundup_power2_divisions divides what lies between two powers of two, the
  // least for any size; 0: requests are rounded to 512 bytes.
  uint64_t roundup_divisions = 0;
  // Pages of expandable segments in large pools; zero: not known.
  Bytes large_page = MiB(20);
  // False: the trace records its own empty_cache requests; none is inferred.
  bool infer_empty_cache = true;
};

// Groups in recorded order. Releases (segment_free, segment_unmap) are part of
// the malloc that they precede, unless
//   * it got no new memory and did not run out: then there was no reason for them;
//   * their stack is not the malloc's (PyTorch notes the malloc's on both);
//   * a segment or pages released, or what was freed just before, would have served the malloc, had
//     they still been there (torch.backends.cudnn.benchmark calls empty_cache() in the middle of an
//     operator);
//   * without stacks: the device is seen holding as much as the malloc asked
//     for, so the driver had no reason to refuse.
// Those others, and late completions that no malloc follows, are an
// empty_cache. `roles` has one entry per event. O(events).
std::vector<RecordedGroup> GroupRecorded(const EventView& events, absl::Span<const EventRole> roles,
                                         const GroupingFacts& facts);

}  // namespace memreplay

#endif  // MEMREPLAY_TRACE_SCHEDULE_RECORDED_GROUPS_H_

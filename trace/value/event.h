// One thing that was asked of the allocator, or that it did. Recorded traces,
// programs and simulator output are all sequences of this one type.
#ifndef MEMREPLAY_TRACE_VALUE_EVENT_H_
#define MEMREPLAY_TRACE_VALUE_EVENT_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "trace/value/units.h"

namespace memreplay {

enum class EventKind : uint8_t {
  // Requests: what the program asked. Fields not named are zero.
  kAlloc,             // size = bytes asked for, stream; id; address once granted
  kFree,              // PyTorch's free_requested: id, address, size, stream
  kRecordStream,      // id, stream = the other stream that uses the block
  kStreamDone,        // everything recorded on `stream` so far is complete
  kEmptyCache,        // torch.cuda.empty_cache(); pool = only that one's, 0 = all
  kMark,              // text = label; size.value() = MarkKind; asks nothing of memory
  kSettings,          // text = PYTORCH_CUDA_ALLOC_CONF string set at run time
  kFraction,          // text = per-process memory fraction, as decimal text
  kFailNext,          // size.value() = how many next driver allocations fail
  kPoolCreate,        // pool; MemPool(); size.value() = PoolFlags
  kPoolForget,        // pool; no longer serves other pools' requests on out of memory
  kPoolBegin,         // pool; allocations of every stream go to it
  kPoolEnd,           // pool
  kPoolRelease,       // pool
  kResetPeak,         // torch.cuda.reset_peak_memory_stats()
  kResetAccumulated,  // torch.cuda.reset_accumulated_memory_stats()
  kOutsideAlloc,      // id, size, text: memory taken past the allocator (NCCL ...)
  kOutsideFree,       // id, size
  // Effects: what the allocator did, in PyTorch's trace vocabulary.
  kFreeCompleted,  // id, address, size, stream
  kSegmentAlloc,   // address, size, stream
  kSegmentFree,
  kSegmentMap,
  kSegmentUnmap,
  kOom,       // address = free bytes per the driver, size = rounded request
  kSnapshot,  // size = active bytes of the device at that moment
};

// What a kMark means; kept in Event::size.
enum class MarkKind : uint8_t {
  kPhase,        // text = path of the phase that begins here, '.'-separated
  kLabel,        // text = label of this moment
  kRetag,        // address = handle of a live allocation, text = its new tag
  kEventRecord,  // address = number of a CUDA event, recorded on stream
  kStreamWait,   // stream waits for the event numbered address
};

// Options of a MemPool, in Event::size of kPoolCreate; may be added up.
enum PoolFlags : uint64_t {
  kPoolUseOnOom = 1,  // serves the default pools when memory runs out
  kPoolNoSplit = 2,   // hands out whole segments
};

constexpr bool IsRequest(EventKind kind) { return kind < EventKind::kFreeCompleted; }

// PyTorch's name of a trace action ("alloc", "free_requested", "segment_map"
// ...); for requests that PyTorch does not record, our own ("empty_cache").
std::string_view EventKindName(EventKind kind);
std::optional<EventKind> EventKindFromName(std::string_view name);

// Whether Event::text_or_stack is a text (else a stack).
constexpr bool HasText(EventKind kind) {
  return kind == EventKind::kMark || kind == EventKind::kSettings || kind == EventKind::kFraction ||
         kind == EventKind::kOutsideAlloc;
}

inline constexpr uint32_t kNoStack = 0;  // index 0 of every StackTable is the empty stack
inline constexpr uint32_t kNoText = 0;   // index 0 of every StringTable is ""

struct Event {
  EventKind kind = EventKind::kMark;
  uint8_t reserved = 0;
  uint16_t pool = 0;                // index into the trace's pool table; 0 = default pool
  AllocationId id = kNoAllocation;  // see units.h
  Address address;                  // for kOom: free bytes of the device
  Bytes size;                       // as PyTorch records it: the unrounded request
  Bytes block_size;                 // extent of the block concerned; 0 where a file does not say
  uint32_t stream = 0;              // index into the trace's stream table
  uint32_t text_or_stack = 0;       // StringTable index for kMark, kSettings, kFraction,
                                    // kOutsideAlloc; StackTable index for all others
};
static_assert(sizeof(Event) == 40 && std::is_trivially_copyable_v<Event>);

}  // namespace memreplay

#endif  // MEMREPLAY_TRACE_VALUE_EVENT_H_

// One thing that was asked of the allocator, or that it did. Recorded traces,
// programs and simulator output are all sequences of this one type.
#ifndef MEMREPLAY_TRACE_VALUE_EVENT_H_
#define MEMREPLAY_TRACE_VALUE_EVENT_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "trace/value/check.h"
#include "trace/value/units.h"

namespace memreplay {

enum class EventKind : uint8_t {
  // Requests: what the program asked. Fields not named are zero.
  kAlloc,             // size = bytes requested, stream; id; address once granted
  kFree,              // PyTorch's free_requested: id, address, size, stream
  kRecordStream,      // id, stream = the other stream that uses the block
  kStreamDone,        // everything recorded on `stream` so far is complete
  kEmptyCache,        // torch.cuda.empty_cache(); pool = only that one's, 0 = all
  kMark,              // text = label; mark(); asks nothing of memory
  kSettings,          // text = PYTORCH_CUDA_ALLOC_CONF string set at run time
  kFraction,          // text = per-process memory fraction, as decimal text
  kFailNext,          // fail_count() = how many next driver allocations fail
  kPoolCreate,        // pool; MemPool(); pool_flags()
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
  kOom,       // device_free(); size = rounded request
  kSnapshot,  // size = active bytes of the device at that moment
};

// What a kMark means.
enum class MarkKind : uint8_t {
  kPhase,        // text = path of the phase that begins here, '.'-separated
  kLabel,        // text = label of this moment
  kRetag,        // address = handle of a live allocation, text = its new tag
  kEventRecord,  // address.value() = number of a CUDA event, recorded on stream
  kStreamWait,   // stream waits for that event
};

// Options of a MemPool; may be added up.
enum PoolFlags : uint64_t {
  kPoolUseOnOom = 1,  // serves the default pools when memory runs out
  kPoolNoSplit = 2,   // hands out whole segments
};

constexpr bool IsRequest(EventKind kind) { return kind < EventKind::kFreeCompleted; }

// Whether PyTorch's own trace has events of this kind.
constexpr bool IsTraced(EventKind kind) {
  return !IsRequest(kind) || kind == EventKind::kAlloc || kind == EventKind::kFree;
}

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

// A request or an effect.
struct Event {
  EventKind kind = EventKind::kMark;
  uint8_t scratch = 0;              // for a reader at work; 0 in every Trace
  uint16_t pool = 0;                // index into the trace's pool table; 0 = default pool
  AllocationId id = kNoAllocation;  // see units.h
  Address address;                  // of the block or segment; a program's handle
  Bytes size;                       // as PyTorch records it: the unrounded request
  Bytes block_size;                 // extent of the block concerned; 0 where a file does not say
  uint32_t stream = 0;              // index into the trace's stream table
  uint32_t text_or_stack = 0;       // StringTable index for kMark, kSettings, kFraction,
                                    // kOutsideAlloc; StackTable index for all others

  // What stands in `size` or `address` where the kind has no such thing. The
  // process stops if the kind is another.
  MarkKind mark() const {  // none of those above where a file has another number
    return static_cast<MarkKind>(std::min<uint64_t>(NumberOf(EventKind::kMark), 255));
  }
  uint64_t fail_count() const { return NumberOf(EventKind::kFailNext); }
  uint64_t pool_flags() const { return NumberOf(EventKind::kPoolCreate); }
  Bytes device_free() const {  // of a kOom: what the driver has left
    Expect(EventKind::kOom);
    return Bytes(address.value());
  }
  bool is_mark(MarkKind wanted) const {
    return kind == EventKind::kMark && size.value() == static_cast<uint64_t>(wanted);
  }

  // Each makes the event one of its kind.
  void set_mark(MarkKind mark) { SetNumber(EventKind::kMark, static_cast<uint64_t>(mark)); }
  void set_fail_count(uint64_t count) { SetNumber(EventKind::kFailNext, count); }
  void set_pool_flags(uint64_t flags) { SetNumber(EventKind::kPoolCreate, flags); }
  void set_oom(Bytes device_free) {
    kind = EventKind::kOom;
    address = Address(device_free.value());
  }

  friend bool operator==(const Event&, const Event&) = default;

  void Expect(EventKind wanted) const { MEMREPLAY_CHECK(kind == wanted, EventKindName(kind)); }

 private:
  uint64_t NumberOf(EventKind wanted) const {
    Expect(wanted);
    return size.value();
  }
  void SetNumber(EventKind wanted, uint64_t number) {
    kind = wanted;
    size = Bytes(number);
  }
};
static_assert(sizeof(Event) == 40 && std::is_trivially_copyable_v<Event>);

}  // namespace memreplay

#endif  // MEMREPLAY_TRACE_VALUE_EVENT_H_

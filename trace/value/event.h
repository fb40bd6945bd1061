// A request to the allocator, or something that the allocator did. Recorded traces, schedules and
// simulator output are all sequences of this one type.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>
#include <type_traits>

#include "trace/value/check.h"
#include "trace/value/units.h"

namespace memreplay {

// What an event is.
enum class EventKind : uint8_t {
  // Requests: what the script asked of the allocator. Fields not named are zero.
  kAlloc,             // size = bytes requested, stream; id; address once granted
  kFree,              // PyTorch's free_requested: id, address, size, stream
  kRecordStream,      // id, stream = the other stream that uses the block
  kStreamDone,        // all work recorded on `stream` so far is complete
  kEmptyCache,        // torch.cuda.empty_cache(); pool = that pool only, 0 = all
  kMark,              // text = label; mark(); does not concern memory
  kSettings,          // text = PYTORCH_CUDA_ALLOC_CONF string set at run time
  kFraction,          // text = per-process memory fraction, as decimal text; fraction_of()
  kFailNext,          // fail_count() = number of next driver allocations that fail
  kPoolCreate,        // pool; MemPool(); pool_flags()
  kPoolForget,        // pool; no longer serves other pools' requests on out of memory
  kPoolBegin,         // pool; allocations of every stream go to it
  kPoolEnd,           // pool
  kPoolRelease,       // pool
  kResetPeak,         // torch.cuda.reset_peak_memory_stats()
  kResetAccumulated,  // torch.cuda.reset_accumulated_memory_stats()
  kOutsideAlloc,      // id, size, text: memory outside the allocator (NCCL ...)
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

// The meaning of a kMark.
enum class MarkKind : uint8_t {
  kPhase,        // text = '.'-separated path of the phase that begins here
  kLabel,        // text = label of this moment
  kRetag,        // address = handle of a live allocation, text = its new tag
  kEventRecord,  // address.value() = number of a CUDA event, recorded on stream
  kStreamWait,   // stream waits for that event
};

// Options of a MemPool, which may be combined.
enum PoolFlags : uint64_t {
  kPoolUseOnOom = 1,  // serves the default pools when memory runs out
  kPoolNoSplit = 2,   // returns whole segments
};

constexpr bool IsRequest(EventKind kind) { return kind < EventKind::kFreeCompleted; }

// Returns whether an event is the device's: a segment, or pages of one, that come or go.
constexpr bool IsSegmentEvent(EventKind kind) {
  return kind == EventKind::kSegmentAlloc || kind == EventKind::kSegmentFree ||
         kind == EventKind::kSegmentMap || kind == EventKind::kSegmentUnmap;
}

// Returns whether PyTorch's own trace has events of this kind.
constexpr bool IsTraced(EventKind kind) {
  return !IsRequest(kind) || kind == EventKind::kAlloc || kind == EventKind::kFree;
}

// The names of kinds, in their order.
inline constexpr std::string_view kEventKindNames[] = {
    "alloc",         "free_requested", "record_stream",  "stream_done",
    "empty_cache",   "mark",           "settings",       "memory_fraction",
    "fail_next",     "pool_create",    "pool_forget",    "pool_begin",
    "pool_end",      "pool_release",   "reset_peak",     "reset_accumulated",
    "outside_alloc", "outside_free",   "free_completed", "segment_alloc",
    "segment_free",  "segment_map",    "segment_unmap",  "oom",
    "snapshot"};
static_assert(std::size(kEventKindNames) == static_cast<size_t>(EventKind::kSnapshot) + 1);

// Returns PyTorch's name of a trace action ("alloc", "free_requested", "segment_map" ...), or
// memreplay's own ("empty_cache") for a request that PyTorch does not record.
constexpr std::string_view EventKindName(EventKind kind) {
  return kind <= EventKind::kSnapshot ? kEventKindNames[static_cast<size_t>(kind)] : "unknown";
}
inline std::optional<EventKind> EventKindFromName(std::string_view name) {
  const auto* found = std::find(std::begin(kEventKindNames), std::end(kEventKindNames), name);
  if (found == std::end(kEventKindNames)) return std::nullopt;
  return static_cast<EventKind>(found - kEventKindNames);
}

// Returns whether Event::text_or_stack is a text (otherwise it is a stack).
constexpr bool HasText(EventKind kind) {
  return kind == EventKind::kMark || kind == EventKind::kSettings || kind == EventKind::kFraction ||
         kind == EventKind::kOutsideAlloc;
}

inline constexpr uint32_t kNoStack = 0;  // index 0 of every StackTable is the empty stack
inline constexpr uint32_t kNoText = 0;   // index 0 of every StringTable is ""

// A request or an effect.
struct Event {
  EventKind kind = EventKind::kMark;
  uint8_t scratch = 0;              // for use by a reader; 0 in every Trace
  uint16_t pool = 0;                // index into the trace's pool table; 0 = default pool
  AllocationId id = kNoAllocation;  // see units.h
  Address address = {};             // of the block or segment; a schedule's handle
  Bytes size = {};                  // as PyTorch records it: the unrounded request
  Bytes block_size = {};            // extent of the block; 0 if a file does not give it
  uint32_t stream = 0;              // index into the trace's stream table
  uint32_t text_or_stack = 0;       // StringTable index for kMark, kSettings, kFraction,
                                    // kOutsideAlloc; StackTable index for all others

  // Return what `size` or `address` holds for kinds without a size or address. The process stops if
  // the event is of another kind.
  MarkKind mark() const {  // not an enumerator if a file has another number
    return static_cast<MarkKind>(std::min<uint64_t>(NumberOf(EventKind::kMark), 255));
  }
  uint64_t fail_count() const { return NumberOf(EventKind::kFailNext); }
  uint64_t pool_flags() const { return NumberOf(EventKind::kPoolCreate); }
  // Whether a kSettings goes back to the settings at the start.
  bool restores_settings() const { return NumberOf(EventKind::kSettings) != 0; }
  Bytes device_free() const {  // of a kOom: bytes that the driver has free
    Expect(EventKind::kOom);
    return Bytes(address.value());
  }
  Bytes fraction_of() const {  // of a kFraction: the GPU's memory, as recorded; 0: unknown
    Expect(EventKind::kFraction);
    return Bytes(address.value());
  }
  bool is_mark(MarkKind wanted) const {
    return kind == EventKind::kMark && size.value() == static_cast<uint64_t>(wanted);
  }

  // Set the kind of the event and its number.
  void set_mark(MarkKind mark) { SetNumber(EventKind::kMark, static_cast<uint64_t>(mark)); }
  void set_fail_count(uint64_t count) { SetNumber(EventKind::kFailNext, count); }
  void set_pool_flags(uint64_t flags) { SetNumber(EventKind::kPoolCreate, flags); }
  void set_restores_settings(bool yes) { SetNumber(EventKind::kSettings, yes ? 1 : 0); }
  void set_fraction_of(Bytes total) {
    kind = EventKind::kFraction;
    address = Address(total.value());
  }
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

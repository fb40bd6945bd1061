// An allocator takes one request at a time and emits its effects. Implementations are the caching
// allocator (caching_allocator.h), no caching at all (direct_allocator.h), and the driver's own
// pool on a real device.
#pragma once

#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "sim/model/memory_stats.h"
#include "sim/model/observer.h"
#include "sim/model/rule.h"
#include "trace/value/event.h"
#include "trace/value/memory_state.h"

namespace memreplay {

// A piece of cached memory that the allocator could hand out.
struct FreeBlock {
  Address address;
  Bytes size;
  uint32_t stream = 0;
  uint16_t pool = 0;
  bool is_large = false;
  bool is_split = false;  // shares its segment with other blocks
  bool is_expandable = false;
};

// An allocator of GPU memory, which takes one request at a time and emits its effects.
class Allocator {
 public:
  virtual ~Allocator() = default;

  // Applies a request (IsRequest(kind)). Its effects go to `out` in trace order, including the
  // kAlloc / kFree entry itself with address and block_size set.
  // A request that runs out of memory emits kOom and no kAlloc; later frees and uses of its id are
  // skipped. kSettings, kFraction and kMark are not passed here: Run() resolves them.
  // Returns an error if PyTorch answers the request with an exception other than out of memory (a
  // pool ended twice, an assertion); the state is then as PyTorch leaves it. O(log free blocks)
  // plus what it releases.
  virtual absl::Status Apply(const Event& request, Observer& out) = 0;

  // Applies settings that change at run time, in PyTorch's grammar. Errors are PyTorch's own
  // (unknown key, value out of range); keys before the offending one stay applied, as in PyTorch.
  virtual absl::Status ApplySettings(std::string_view conf) = 0;
  // Does what torch.cuda.set_per_process_memory_fraction does. Returns an error outside [0, 1].
  virtual absl::Status SetMemoryFraction(double fraction) = 0;

  virtual const MemoryStats& statistics() const = 0;
  // Returns how many requests ran out of memory, including those that PyTorch does not count.
  virtual int64_t ooms() const { return statistics().num_ooms; }
  // Returns one of these statistics in O(1), without computing the others, for callers that read it
  // at each event.
  virtual int64_t inactive_split_bytes() const {
    return statistics().inactive_split_bytes.all.current();
  }
  // Returns the size of the smallest block that serves a request of `size`.
  virtual Bytes BlockSizeFor(Bytes size) const { return size; }
  // Returns how often each rule was followed; only the caching allocator counts.
  virtual RuleCounts rule_counts() const { return {}; }
  // Returns the segments ascending by address, as torch.cuda.memory_snapshot() lists them.
  virtual MemoryState Segments() const = 0;
  // Visits free blocks in the order of the free sets: pool, kind, stream, size, and then the
  // release's order of equal blocks (TorchProfile::free_tie).
  virtual void VisitFreeBlocks(absl::FunctionRef<void(const FreeBlock&)> visit) const = 0;
  // Stops the process with a message if an invariant is broken. O(blocks).
  virtual void CheckInvariants() const = 0;
};

}  // namespace memreplay

// Which other streams use a block (record_stream), and in which order PyTorch
// goes through such sets.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/model/flat_hash_order.h"
#include "trace/value/units.h"

namespace memreplay {

// PyTorch's pool of each priority has this many streams.
inline constexpr uint64_t kStreamsPerPool = 32;

// The order in which the pending frees of several streams are processed. A snapshot shows only
// stream handles, but PyTorch orders by stream ids.
enum class StreamOrder : uint8_t {
  // For schedules that were written: 0 is the default stream, s >= 1 the (s-1)-th stream taken from
  // the pool of priority 0. Numbers beyond the pool continue in the same way.
  kPyTorchHash,
  // By stream index, for recordings: the builder numbered the streams in the order in which their
  // frees completed.
  kAscending,
};

// Returns the table key of a stream, given as its number in a schedule that was written (the
// handle) or, for kAscending, as any number unique to it.
HashedKey StreamKey(uint64_t stream, StreamOrder order);

// Returns the table key of a pool id: its first component, or the second if that is zero.
constexpr HashedKey PoolKey(const PoolId& id) {
  return id.first != 0 ? HashedKey{id.first, 1} : HashedKey{id.second, 0};
}

// The other streams that use one block.
class StreamUses {
 public:
  bool empty() const { return streams_.empty(); }
  // Adds a stream; `stream` is its index and `key` its StreamKey().
  void Add(uint32_t stream, HashedKey key) { streams_.TryEmplace(key, stream); }
  // Returns the stream indexes in iteration order; the set is empty afterwards.
  std::vector<uint32_t> Take(StreamOrder order);

  // Marks a stream recorded while a capture or pool context was active. The mark belongs to the
  // Block object, outlives the allocation, and is cleared only when a deferred free is processed.
  void MarkDuringCapture(HashedKey key) { during_capture_.push_back(key); }
  // Removes the marked streams from the set, and the marks. Returns whether any was removed.
  bool DropCaptured();

 private:
  FlatHashOrder<uint32_t> streams_;
  std::vector<HashedKey> during_capture_;
};

}  // namespace memreplay

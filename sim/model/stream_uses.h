// Which other streams use a block (record_stream), and in which order PyTorch
// goes through such sets.
#ifndef MEMREPLAY_SIM_MODEL_STREAM_USES_H_
#define MEMREPLAY_SIM_MODEL_STREAM_USES_H_

#include <cstdint>
#include <vector>

#include "sim/model/flat_hash_order.h"
#include "trace/value/units.h"

namespace memreplay {

// So many streams has PyTorch's pool of each priority.
inline constexpr uint64_t kStreamsPerPool = 32;

// The order in which the pending frees of several streams are processed. A snapshot shows stream
// handles only; PyTorch's order is by its stream ids.
enum class StreamOrder : uint8_t {
  // Program streams: 0 is the default stream, s >= 1 the (s-1)-th stream taken
  // from the pool of priority 0. What is beyond the pool goes on in the same way.
  kPyTorchHash,
  // By stream index: recordings, where the builder numbered the streams in the
  // order in which their frees completed.
  kAscending,
};

// The table key of a stream, given as its number in a program (the handle) or,
// for kAscending, as any number unique to it.
HashedKey StreamKey(uint64_t stream, StreamOrder order);

// The table key of a pool id: its first component, or the second if that is zero.
constexpr HashedKey PoolKey(const PoolId& id) {
  return id.first != 0 ? HashedKey{id.first, 1} : HashedKey{id.second, 0};
}

// The other streams that use one block.
class StreamUses {
 public:
  bool empty() const { return streams_.empty(); }
  // `stream` is an index, `key` its StreamKey().
  void Add(uint32_t stream, HashedKey key) { streams_.TryEmplace(key, stream); }
  // Returns the stream indexes in iteration order; the set is empty afterwards.
  std::vector<uint32_t> Take(StreamOrder order);

  // Streams recorded while a capture or pool context was active. The mark belongs to the Block
  // object, outlives the allocation, and is cleared only when a deferred free is processed.
  void MarkDuringCapture(HashedKey key) { during_capture_.push_back(key); }
  // Drops the marked streams from the set, and the marks. Returns whether any was dropped.
  bool DropCaptured();

 private:
  FlatHashOrder<uint32_t> streams_;
  std::vector<HashedKey> during_capture_;
};

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_MODEL_STREAM_USES_H_

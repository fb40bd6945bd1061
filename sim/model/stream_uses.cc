#include "sim/model/stream_uses.h"

namespace memreplay {

HashedKey StreamKey(uint64_t stream, StreamOrder order) {
  if (order == StreamOrder::kAscending) return {stream, stream};
  // CUDAStream's hash packs device type (CUDA = 1), device 0 and the stream id;
  // pool streams of priority 0 have id (index << 5) | (1 << 1) | 1.
  constexpr uint64_t kCudaDevice = uint64_t{1} << 56;
  const uint64_t id = stream == 0 ? 0 : (stream - 1) << 5 | 3;
  return {kCudaDevice | id, stream};
}

std::vector<uint32_t> StreamUses::Take(StreamOrder order) {
  std::vector<uint32_t> streams;
  for (size_t slot = streams_.Next(0); slot < streams_.slot_count();
       slot = streams_.Next(slot + 1)) {
    streams.push_back(streams_.value_at(slot));
  }
  if (order == StreamOrder::kAscending) std::sort(streams.begin(), streams.end());
  streams_ = FlatHashOrder<uint32_t>();
  return streams;
}

bool StreamUses::DropCaptured() {
  bool dropped = false;
  for (HashedKey key : during_capture_) dropped |= streams_.Erase(key);
  during_capture_.clear();
  return dropped;
}

}  // namespace memreplay

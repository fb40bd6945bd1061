// The allocations of a random load that are live, and which of them goes next.
#ifndef MEMREPLAY_TRACE_PROGRAM_RANDOM_LOAD_H_
#define MEMREPLAY_TRACE_PROGRAM_RANDOM_LOAD_H_

#include <cstddef>
#include <cstdint>
#include <queue>
#include <vector>

namespace memreplay::program {

// The blocks of a statement random_load, and which of them is freed next.
class RandomLoad {
 public:
  struct Block {
    uint64_t due = 0;  // freed before the allocation of this number
    uint64_t handle = 0;
    int64_t size = 0;
    uint32_t stream = 0;
  };

  RandomLoad(int64_t ops, int64_t live_target, int64_t streams)
      : ops_(static_cast<uint64_t>(ops)), live_target_(live_target), streams_(streams) {}

  bool done() const { return op_ == ops_; }
  uint64_t op() const { return op_; }
  int64_t streams() const { return streams_; }

  // Whether a block has to go before `size` more bytes: the next to die.
  bool MustFree(int64_t size) const {
    return !blocks_.empty() && (blocks_.top().due <= op_ || size > live_target_ - live_bytes_);
  }
  bool empty() const { return blocks_.empty(); }
  size_t bytes() const { return blocks_.size() * sizeof(Block); }
  Block Free() {
    const Block block = blocks_.top();
    blocks_.pop();
    live_bytes_ -= block.size;
    return block;
  }
  // The allocation of this turn; the next turn begins.
  void Add(const Block& block) {
    blocks_.push(block);
    live_bytes_ += block.size;
    ++op_;
  }

 private:
  struct DiesLater {
    bool operator()(const Block& a, const Block& b) const {
      return a.due != b.due ? a.due > b.due : a.handle > b.handle;
    }
  };

  uint64_t ops_;
  int64_t live_target_;
  int64_t streams_;
  uint64_t op_ = 0;
  int64_t live_bytes_ = 0;
  std::priority_queue<Block, std::vector<Block>, DiesLater> blocks_;
};

}  // namespace memreplay::program

#endif  // MEMREPLAY_TRACE_PROGRAM_RANDOM_LOAD_H_

// The live allocations of a random load, in the order of their frees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <queue>
#include <vector>

namespace memreplay::program {

// The live blocks of a random_load statement.
class RandomLoad {
 public:
  struct Block {
    uint64_t due = 0;  // freed before the allocation with this number
    uint64_t handle = 0;
    int64_t size = 0;
    uint32_t stream = 0;
  };

  RandomLoad(int64_t ops, int64_t live_target, int64_t streams)
      : ops_(static_cast<uint64_t>(ops)), live_target_(live_target), streams_(streams) {}

  bool done() const { return op_ == ops_; }
  uint64_t op() const { return op_; }
  int64_t streams() const { return streams_; }

  // Returns whether a block, the one that Free() returns, must be freed before `size` more bytes
  // are allocated.
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
  // Adds the allocation of this step and starts the next step.
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

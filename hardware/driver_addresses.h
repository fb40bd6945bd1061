// Where NVIDIA's driver places the memory of cudaMalloc, according to recordings (docs/fidelity.md
// says how many there are and how often the rule holds). memreplay's simulated device and the GPU
// of `memreplay record` both place memory by this rule.
//
// This is header-only and uses only templates of the C++ library, since record/card requires
// nothing but libc. Errors are return values and never end the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <vector>

namespace memreplay {

// The driver maps memory in units of 2 MiB; each size below is rounded up to whole units.
inline constexpr uint64_t kDriverUnit = uint64_t{2} << 20;

// Returns `bytes` rounded up to whole units, at least one. A size in the last 2 MiB below 2^64 is
// rounded down, since either result exceeds any device.
constexpr uint64_t WholeDriverUnits(uint64_t bytes) {
  if (bytes > ~uint64_t{0} - (kDriverUnit - 1)) return bytes / kDriverUnit * kDriverUnit;
  return bytes == 0 ? kDriverUnit : (bytes + kDriverUnit - 1) / kDriverUnit * kDriverUnit;
}

// Free ranges of addresses, where adjacent ranges are merged. Addresses are multiples of
// kDriverUnit and never 0. Each call is O(log ranges).
class FreeAddresses {
 public:
  // Takes the lowest address at which `size` bytes are free.
  std::optional<uint64_t> TakeLowest(uint64_t size) {
    const uint64_t need = WholeDriverUnits(size);
    if (nodes_[root_].largest < need) return std::nullopt;
    uint32_t found = root_;
    while (true) {
      const Node& node = nodes_[found];
      if (nodes_[node.left].largest >= need) {
        found = node.left;
      } else if (node.size >= need) {
        break;
      } else {
        found = node.right;
      }
    }
    const uint64_t address = nodes_[found].address;
    Cut(address, address, need);
    return address;
  }

  // Takes the top of the highest range that is larger than `size`.
  std::optional<uint64_t> TakeTop(uint64_t size) {
    const uint64_t need = WholeDriverUnits(size);
    if (nodes_[root_].largest <= need) return std::nullopt;
    uint32_t found = root_;
    while (true) {
      const Node& node = nodes_[found];
      if (nodes_[node.right].largest > need) {
        found = node.right;
      } else if (node.size > need) {
        break;
      } else {
        found = node.left;
      }
    }
    const uint64_t range = nodes_[found].address;
    const uint64_t address = range + nodes_[found].size - need;
    Cut(range, address, need);
    return address;
  }

  // Takes exactly these addresses; returns false if they are not all free.
  bool TakeAt(uint64_t address, uint64_t size) {
    uint32_t at = root_;
    uint32_t below = 0;  // the last range that begins at or below the address
    while (at != 0) {
      if (nodes_[at].address <= address) below = at;
      at = nodes_[at].address <= address ? nodes_[at].right : nodes_[at].left;
    }
    if (below == 0) return false;
    const uint64_t need = WholeDriverUnits(size);
    const uint64_t before = address - nodes_[below].address;
    if (before > nodes_[below].size || nodes_[below].size - before < need) return false;
    Cut(nodes_[below].address, address, need);
    return true;
  }

  // Frees addresses, which need not have been free before; returns false if some already are.
  bool Give(uint64_t address, uint64_t size) {
    uint64_t begin = address;
    uint64_t end = begin + WholeDriverUnits(size);
    uint32_t before, after;
    Split(root_, begin, &before, &after);
    uint32_t last = before, first = after;
    while (nodes_[last].right != 0) last = nodes_[last].right;
    while (nodes_[first].left != 0) first = nodes_[first].left;
    const bool overlaps = (last != 0 && nodes_[last].address + nodes_[last].size > begin) ||
                          (first != 0 && nodes_[first].address < end);
    if (overlaps) {
      root_ = Merge(before, after);
      return false;
    }
    // Adjacent free ranges become part of the range.
    if (last != 0 && nodes_[last].address + nodes_[last].size == begin) {
      begin = nodes_[last].address;
      Split(before, begin, &before, &last);
      spare_.push_back(last);
    }
    if (first != 0 && nodes_[first].address == end) {
      end += nodes_[first].size;
      Split(after, nodes_[first].address + 1, &first, &after);
      spare_.push_back(first);
    }
    root_ = Merge(Merge(before, NewRange(begin, end - begin)), after);
    return true;
  }

  // Returns true if TakeLowest(size) finds a range; TakeTop(size) does if Fits(size + kDriverUnit).
  bool Fits(uint64_t size) const { return nodes_[root_].largest >= WholeDriverUnits(size); }
  size_t range_count() const { return nodes_.size() - 1 - spare_.size(); }

 private:
  // A node of a treap ordered by address, with the largest range of each subtree. Priorities come
  // from a fixed sequence, so that equal calls result in equal shapes.
  struct Node {
    uint64_t address = 0;
    uint64_t size = 0;
    uint64_t largest = 0;  // in the subtree
    uint64_t priority = 0;
    uint32_t left = 0;  // 0: none; node 0 is a sentinel of size 0
    uint32_t right = 0;
  };

  uint32_t NewRange(uint64_t address, uint64_t size) {
    uint32_t at = static_cast<uint32_t>(nodes_.size());
    if (spare_.empty()) {
      nodes_.emplace_back();
    } else {
      at = spare_.back();
      spare_.pop_back();
    }
    // The odd multiplier of a Weyl sequence spreads priorities well enough for a heap order.
    priority_state_ += 0x9e3779b97f4a7c15;
    uint64_t mixed = priority_state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    nodes_[at] = {address, size, size, mixed ^ (mixed >> 27), 0, 0};
    return at;
  }

  void Update(uint32_t at) {
    Node& node = nodes_[at];
    node.largest = node.size;
    if (nodes_[node.left].largest > node.largest) node.largest = nodes_[node.left].largest;
    if (nodes_[node.right].largest > node.largest) node.largest = nodes_[node.right].largest;
  }

  uint32_t Merge(uint32_t left, uint32_t right) {
    if (left == 0) return right;
    if (right == 0) return left;
    if (nodes_[left].priority > nodes_[right].priority) {
      nodes_[left].right = Merge(nodes_[left].right, right);
      Update(left);
      return left;
    }
    nodes_[right].left = Merge(left, nodes_[right].left);
    Update(right);
    return right;
  }

  // Splits into the ranges that begin below `address`, *left, and the others, *right.
  void Split(uint32_t at, uint64_t address, uint32_t* left, uint32_t* right) {
    if (at == 0) {
      *left = *right = 0;
      return;
    }
    uint32_t inner = 0;
    if (nodes_[at].address < address) {
      Split(nodes_[at].right, address, &inner, right);
      nodes_[at].right = inner;
      *left = at;
    } else {
      Split(nodes_[at].left, address, left, &inner);
      nodes_[at].left = inner;
      *right = at;
    }
    Update(at);
  }

  // Takes [begin, begin + need) out of the range that begins at `range` and contains all of it.
  void Cut(uint64_t range, uint64_t begin, uint64_t need) {
    uint32_t before, node, after;
    Split(root_, range, &before, &node);
    Split(node, range + 1, &node, &after);
    const uint64_t end = range + nodes_[node].size;
    spare_.push_back(node);
    if (begin > range) before = Merge(before, NewRange(range, begin - range));
    if (end > begin + need) before = Merge(before, NewRange(begin + need, end - begin - need));
    root_ = Merge(before, after);
  }

  std::vector<Node> nodes_ = std::vector<Node>(1);
  std::vector<uint32_t> spare_;  // free nodes
  uint32_t root_ = 0;
  uint64_t priority_state_ = 0;
};

// How the driver chooses addresses.
enum class AddressOrder : uint8_t {
  // Windows and WSL, with addresses below 2^40. An allocation takes the lowest address with room,
  // including holes of freed allocations. The driver itself holds the lowest kBelowFirstKernel
  // bytes until the first kernel is launched; then it moves above what was allocated until then,
  // and later allocations fill the bottom.
  kUpwards,
  // Linux. An allocation for which no chunk has room opens a new one, of its size rounded up to
  // kChunk, at the top of the highest gap between chunks that is larger than that. An allocation
  // takes the lowest hole of the newest chunk that has room. A chunk that is entirely free is
  // closed.
  kChunksDownwards,
};

// The addresses of one device: those in use and those that the driver chooses next.
class DriverAddresses {
 public:
  static constexpr uint64_t kChunk = uint64_t{32} << 20;
  // The median of the three machines whose recordings show it: 80, 108, and 188 or 198 MiB.
  static constexpr uint64_t kBelowFirstKernel = uint64_t{108} << 20;

  // Manages the addresses [begin, end), multiples of kChunk. With kUpwards, the lowest
  // `below_first_kernel` bytes are taken until FirstKernel().
  DriverAddresses(uint64_t begin, uint64_t end, AddressOrder order, uint64_t below_first_kernel = 0)
      : order_(order) {
    if (end > begin) gaps_.Give(begin, end - begin);
    if (order == AddressOrder::kUpwards && below_first_kernel != 0 &&
        gaps_.TakeAt(begin, below_first_kernel)) {
      drivers_ = begin;
      drivers_size_ = below_first_kernel;
    }
  }

  // Returns nullopt if there is no room.
  std::optional<uint64_t> Take(uint64_t size) {
    if (order_ == AddressOrder::kUpwards) return gaps_.TakeLowest(size);
    if (!holes_.Fits(size)) {
      const uint64_t units = WholeDriverUnits(size);
      if (units > ~uint64_t{0} - kChunk) return std::nullopt;
      const uint64_t chunk = (units + kChunk - 1) / kChunk * kChunk;
      if (!HasRank(chunk)) return std::nullopt;
      const std::optional<uint64_t> begin = gaps_.TakeTop(chunk);
      if (!begin.has_value()) return std::nullopt;
      Open(*begin, chunk);
    }
    const uint64_t hole = *holes_.TakeLowest(size);
    const auto owner = std::prev(by_rank_.upper_bound(hole));
    chunks_.find(owner->second)->second.used += WholeDriverUnits(size);
    return owner->second + (hole - owner->first);
  }

  // Returns false if the addresses are not taken.
  bool Give(uint64_t address, uint64_t size) {
    if (order_ == AddressOrder::kUpwards) return gaps_.Give(address, size);
    const auto at = ChunkOf(address);
    if (at == chunks_.end()) return false;
    Chunk& chunk = at->second;
    if (at->first + chunk.size - address < WholeDriverUnits(size)) return false;
    if (!holes_.Give(chunk.rank + (address - at->first), size)) return false;
    chunk.used -= WholeDriverUnits(size);
    if (chunk.used != 0) return true;
    holes_.TakeAt(chunk.rank, chunk.size);
    gaps_.Give(at->first, chunk.size);
    by_rank_.erase(chunk.rank);
    chunks_.erase(at);
    return true;
  }

  // Notes that a kernel was launched, the first or a later one.
  void FirstKernel() {
    if (drivers_size_ == 0) return;
    gaps_.TakeLowest(drivers_size_);
    gaps_.Give(drivers_, drivers_size_);
    drivers_size_ = 0;
  }

  // Opens a chunk of `size` (a multiple of kChunk) at `begin`, newer than those before and free
  // until TakeAt(). Requires kChunksDownwards. The chunk must not touch another chunk or an address
  // of the constructor's range. Returns false if no rank is left for it.
  bool Open(uint64_t begin, uint64_t size) {
    if (!HasRank(size)) return false;
    next_rank_ -= size + kDriverUnit;
    chunks_.emplace(begin, Chunk{size, next_rank_, 0});
    by_rank_.emplace(next_rank_, begin);
    return holes_.Give(next_rank_, size);
  }

  // Takes exactly these addresses; returns false if they are not all free or are in several chunks.
  bool TakeAt(uint64_t address, uint64_t size) {
    if (order_ == AddressOrder::kUpwards) return gaps_.TakeAt(address, size);
    const auto at = ChunkOf(address);
    if (at == chunks_.end()) return false;
    if (!holes_.TakeAt(at->second.rank + (address - at->first), size)) return false;
    at->second.used += WholeDriverUnits(size);
    return true;
  }

 private:
  struct Chunk {
    uint64_t size = 0;
    uint64_t rank = 0;  // address of its holes in holes_
    uint64_t used = 0;
  };
  using Chunks = std::map<uint64_t, Chunk>;

  // Returns the chunk that contains `address`.
  Chunks::iterator ChunkOf(uint64_t address) {
    auto chunk = chunks_.upper_bound(address);
    if (chunk == chunks_.begin()) return chunks_.end();
    --chunk;
    return address - chunk->first < chunk->second.size ? chunk : chunks_.end();
  }
  // Returns true if a rank is left for a chunk.
  bool HasRank(uint64_t size) const {
    return size < next_rank_ && next_rank_ - size > kDriverUnit * 2;
  }

  AddressOrder order_;
  FreeAddresses gaps_;                       // between chunks; with kUpwards, between allocations
  uint64_t drivers_ = 0, drivers_size_ = 0;  // what the first kernel frees
  // The holes of all chunks, each moved to its chunk's rank. A newer chunk has a lower rank, so
  // that the first hole that fits is the one to take. Ranks are a unit apart, so that holes of two
  // chunks never merge.
  FreeAddresses holes_;
  uint64_t next_rank_ = uint64_t{1} << 62;
  Chunks chunks_;                         // by address
  std::map<uint64_t, uint64_t> by_rank_;  // value: begin of the chunk
};

}  // namespace memreplay

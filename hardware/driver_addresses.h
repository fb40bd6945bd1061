// Where NVIDIA's driver puts what cudaMalloc allocates, as recordings show it (docs/fidelity.md
// says of how many, and how often the rule holds). memreplay's simulated device and the GPU of
// `memreplay record` both place memory by it.
//
// Header-only, and over the templates of the C++ library alone, since record/card needs nothing but
// libc. What cannot be done is a value and never ends the process.
#ifndef MEMREPLAY_HARDWARE_DRIVER_ADDRESSES_H_
#define MEMREPLAY_HARDWARE_DRIVER_ADDRESSES_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <vector>

namespace memreplay {

// The driver maps memory in units of 2 MiB; each size below is rounded up to whole ones.
inline constexpr uint64_t kDriverUnit = uint64_t{2} << 20;

// `bytes` in whole units, at least one. Of the last 2 MiB below 2^64 it is rounded down: more than
// any device has either way.
constexpr uint64_t WholeDriverUnits(uint64_t bytes) {
  if (bytes > ~uint64_t{0} - (kDriverUnit - 1)) return bytes / kDriverUnit * kDriverUnit;
  return bytes == 0 ? kDriverUnit : (bytes + kDriverUnit - 1) / kDriverUnit * kDriverUnit;
}

// Free ranges of addresses; neighbours are merged. Addresses are multiples of kDriverUnit and never
// 0. Each call is O(log ranges).
class FreeAddresses {
 public:
  // The lowest address at which `size` bytes are free.
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

  // The top of the highest range that is larger than `size`.
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

  // Those very addresses; false if they are not all free.
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

  // Makes them free, whether or not they were before the first call; false if some are free
  // already.
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
    // The neighbours, if they touch, become part of the range.
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

  // Whether TakeLowest(size) finds a range; TakeTop(size) does if Fits(size + kDriverUnit).
  bool Fits(uint64_t size) const { return nodes_[root_].largest >= WholeDriverUnits(size); }
  size_t range_count() const { return nodes_.size() - 1 - spare_.size(); }

 private:
  // A treap by address that knows the largest range below each node. Priorities come from a fixed
  // sequence: same calls, same shape.
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
    // An odd multiplier of a Weyl sequence: spread well enough for a heap order.
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

  // Ranges below `address` go to *left, the others to *right.
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

  // Takes [begin, begin + need) out of the range that begins at `range` and holds all of it.
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
  std::vector<uint32_t> spare_;  // nodes to use again
  uint32_t root_ = 0;
  uint64_t priority_state_ = 0;
};

enum class AddressOrder : uint8_t {
  // Windows and WSL, whose addresses lie below 2^40: the lowest address with room, holes of freed
  // allocations included. Until the first kernel is launched the lowest kBelowFirstKernel bytes are
  // the driver's; then it moves to where there is room, above what was allocated until then, and
  // what comes next fills the bottom.
  kUpwards,
  // Linux: space is opened in chunks, the size of the allocation that finds no room rounded up to
  // kChunk, at the top of the highest gap between chunks that is larger than that. An allocation
  // takes the lowest hole of the newest chunk that has room. A chunk that is all free is closed.
  kChunksDownwards,
};

class DriverAddresses {
 public:
  static constexpr uint64_t kChunk = uint64_t{32} << 20;
  // Of the machines whose recordings show it, three had 80, 108 and 188 or 198 MiB: the median.
  static constexpr uint64_t kBelowFirstKernel = uint64_t{108} << 20;

  // Of the addresses [begin, end), multiples of kChunk. With kUpwards, the lowest
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

  // Nullopt: no room.
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

  // False if they are not taken.
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

  // A kernel was launched, the first or a later one.
  void FirstKernel() {
    if (drivers_size_ == 0) return;
    gaps_.TakeLowest(drivers_size_);
    gaps_.Give(drivers_, drivers_size_);
    drivers_size_ = 0;
  }

  // With kChunksDownwards: a chunk of `size` (a multiple of kChunk) at `begin`, newer than those
  // before, none of it taken until TakeAt(). It must touch no chunk and no address of the
  // constructor's range. False: there are too many to tell which is newer.
  bool Open(uint64_t begin, uint64_t size) {
    if (!HasRank(size)) return false;
    next_rank_ -= size + kDriverUnit;
    chunks_.emplace(begin, Chunk{size, next_rank_, 0});
    by_rank_.emplace(next_rank_, begin);
    return holes_.Give(next_rank_, size);
  }

  // Those very addresses; false if they are not all free, or in several chunks.
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
    uint64_t rank = 0;  // where its holes are in holes_
    uint64_t used = 0;
  };
  using Chunks = std::map<uint64_t, Chunk>;

  // The chunk that `address` is in.
  Chunks::iterator ChunkOf(uint64_t address) {
    auto chunk = chunks_.upper_bound(address);
    if (chunk == chunks_.begin()) return chunks_.end();
    --chunk;
    return address - chunk->first < chunk->second.size ? chunk : chunks_.end();
  }
  // Whether there is a rank left for a chunk.
  bool HasRank(uint64_t size) const {
    return size < next_rank_ && next_rank_ - size > kDriverUnit * 2;
  }

  AddressOrder order_;
  FreeAddresses gaps_;                       // between chunks; with kUpwards, between allocations
  uint64_t drivers_ = 0, drivers_size_ = 0;  // what the first kernel frees
  // The holes of all chunks, each chunk's moved to its rank: the newer a chunk the lower, so that
  // the first hole that fits is the one to take. Ranks are apart by a unit, so that holes of two
  // chunks never merge.
  FreeAddresses holes_;
  uint64_t next_rank_ = uint64_t{1} << 62;
  Chunks chunks_;                         // by address
  std::map<uint64_t, uint64_t> by_rank_;  // begin of the chunk
};

}  // namespace memreplay

#endif  // MEMREPLAY_HARDWARE_DRIVER_ADDRESSES_H_

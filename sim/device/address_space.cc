#include "sim/device/address_space.h"

#include <algorithm>
#include <utility>

#include "trace/value/check.h"

namespace memreplay {
namespace {}  // namespace

AddressSpace::AddressSpace(std::initializer_list<Range> ranges) : nodes_(1) {
  for (const Range& range : ranges) {
    root_ = Merge(root_, NewHole(range.begin.value(), (range.end - range.begin).value()));
  }
}

uint32_t AddressSpace::NewHole(uint64_t address, uint64_t size) {
  uint32_t node;
  if (spare_.empty()) {
    node = static_cast<uint32_t>(nodes_.size());
    nodes_.emplace_back();
  } else {
    node = spare_.back();
    spare_.pop_back();
  }
  // An odd multiplier of a Weyl sequence: spread well enough for a heap order.
  priority_state_ += 0x9e3779b97f4a7c15;
  uint64_t mixed = priority_state_;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  nodes_[node] = Node{.address = address,
                      .size = size,
                      .largest = size,
                      .priority = mixed ^ (mixed >> 27),
                      .left = 0,
                      .right = 0};
  ++hole_count_;
  return node;
}

void AddressSpace::DropHole(uint32_t node) {
  spare_.push_back(node);
  --hole_count_;
}

void AddressSpace::Update(uint32_t node) {
  Node& n = nodes_[node];
  n.largest = std::max({n.size, nodes_[n.left].largest, nodes_[n.right].largest});
}

uint32_t AddressSpace::Merge(uint32_t left, uint32_t right) {
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

void AddressSpace::Split(uint32_t node, uint64_t address, uint32_t* left, uint32_t* right) {
  if (node == 0) {
    *left = *right = 0;
    return;
  }
  uint32_t inner = 0;
  if (nodes_[node].address < address) {
    Split(nodes_[node].right, address, &inner, right);
    nodes_[node].right = inner;
    *left = node;
  } else {
    Split(nodes_[node].left, address, left, &inner);
    nodes_[node].left = inner;
    *right = node;
  }
  Update(node);
}

void AddressSpace::Cut(uint64_t hole, uint64_t begin, uint64_t need) {
  uint32_t before, node, after;
  Split(root_, hole, &before, &node);
  Split(node, hole + 1, &node, &after);
  const uint64_t end = hole + nodes_[node].size;
  MEMREPLAY_CHECK(end >= begin + need, "addresses taken that are not free");
  DropHole(node);
  if (begin > hole) before = Merge(before, NewHole(hole, begin - hole));
  if (end > begin + need) before = Merge(before, NewHole(begin + need, end - begin - need));
  root_ = Merge(before, after);
}

Address AddressSpace::Take(Bytes size) {
  const uint64_t need = WholeUnits(size).value();
  MEMREPLAY_CHECK(nodes_[root_].largest >= need, "address space exhausted");
  uint32_t found = root_;
  while (true) {
    const Node& n = nodes_[found];
    if (nodes_[n.left].largest >= need) {
      found = n.left;
    } else if (n.size >= need) {
      break;
    } else {
      found = n.right;
    }
  }
  const uint64_t address = nodes_[found].address;
  Cut(address, address, need);
  return Address(address);
}

Address AddressSpace::TakeTop(Bytes size) {
  const uint64_t need = WholeUnits(size).value();
  MEMREPLAY_CHECK(nodes_[root_].largest > need, "address space exhausted");
  uint32_t found = root_;
  while (true) {
    const Node& n = nodes_[found];
    if (nodes_[n.right].largest > need) {
      found = n.right;
    } else if (n.size > need) {
      break;
    } else {
      found = n.left;
    }
  }
  const uint64_t hole = nodes_[found].address;
  const uint64_t address = hole + nodes_[found].size - need;
  Cut(hole, address, need);
  return Address(address);
}

void AddressSpace::TakeAt(Address address, Bytes size) {
  uint32_t found = root_;
  uint32_t below = 0;  // the last hole that begins at or below the address
  while (found != 0) {
    if (nodes_[found].address <= address.value()) below = found;
    found = nodes_[found].address <= address.value() ? nodes_[found].right : nodes_[found].left;
  }
  MEMREPLAY_CHECK(below != 0, "addresses taken that are not free");
  Cut(nodes_[below].address, address.value(), WholeUnits(size).value());
}

bool AddressSpace::Fits(Bytes size) const {
  return nodes_[root_].largest >= WholeUnits(size).value();
}

void AddressSpace::Give(Address address, Bytes size) {
  uint64_t begin = address.value();
  uint64_t end = begin + WholeUnits(size).value();
  uint32_t before, after;
  Split(root_, begin, &before, &after);

  // The neighbours, if they touch the returned piece, become part of its hole.
  if (before != 0) {
    uint32_t last = before;
    while (nodes_[last].right != 0) last = nodes_[last].right;
    const uint64_t last_end = nodes_[last].address + nodes_[last].size;
    MEMREPLAY_CHECK(last_end <= begin, "address range returned twice");
    if (last_end == begin) {
      begin = nodes_[last].address;
      Split(before, begin, &before, &last);
      DropHole(last);
    }
  }
  if (after != 0) {
    uint32_t first = after;
    while (nodes_[first].left != 0) first = nodes_[first].left;
    MEMREPLAY_CHECK(end <= nodes_[first].address, "address range returned twice");
    if (end == nodes_[first].address) {
      end += nodes_[first].size;
      Split(after, nodes_[first].address + 1, &first, &after);
      DropHole(first);
    }
  }
  root_ = Merge(Merge(before, NewHole(begin, end - begin)), after);
}

}  // namespace memreplay

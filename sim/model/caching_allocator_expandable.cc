// Expandable segments: an address reservation whose pages are mapped and
// unmapped as needed.
#include <algorithm>

#include "sim/model/caching_allocator.h"
#include "sim/settings/size_rules.h"

namespace memreplay {
namespace {

// Returns whether the block may become part of an allocation because it is cached or has no pages.
bool IsUsable(const Block* block) {
  return block != nullptr && !block->allocated && !block->is_pending();
}

bool IsWholeReservation(const Block* block) {
  return block->prev == nullptr && block->next == nullptr;
}

}  // namespace

uint32_t CachingAllocator::AddReservation(const ExpandableSegment& segment) {
  if (unused_reservations_.empty()) {
    reservations_.emplace_back();
    unused_reservations_.push_back(static_cast<uint32_t>(reservations_.size()));
  }
  const uint32_t number = unused_reservations_.back();
  unused_reservations_.pop_back();
  reservations_[number - 1] = segment;
  return number;
}

Bytes CachingAllocator::PageSize(const BlockPool& pool) const {
  return pool.is_large() ? config_.large_segment_size : kSmallBuffer;
}

Block* CachingAllocator::FindExpandableBlock(const Params& params) {
  for (Block* unmapped : params.pool->of(params.stream).unmapped) {
    Block* const start = IsUsable(unmapped->prev) ? unmapped->prev : unmapped;
    Bytes room;
    for (Block* block = start; IsUsable(block) && room < params.size; block = block->next) {
      room += block->size;
    }
    if (room >= params.size) return start;
  }
  const Bytes page = PageSize(*params.pool);
  const Bytes size = RoundUp(ExpandableReservation(device_.TotalMemory(), config_), page);
  if (params.size > size && !profile_.reserves_for_oversized_request) return nullptr;
  Fire(Rule::kReserve);
  if (!HasReservation()) return nullptr;
  const std::optional<Address> base = device_.ReserveRange(size);
  if (!base.has_value()) return nullptr;
  StreamPool& home = params.pool->of(params.stream);
  Block* block = NewBlock(*base, size, OrderOfSegment(*base, size), home);
  block->mapped = false;
  block->SetReservation(AddReservation({*base, page, size}));
  home.unmapped.insert(block);
  return block;
}

Block* CachingAllocator::TryAllocateExpandableBlock(const Params& params) {
  Block* block = FindExpandableBlock(params);
  if (block == nullptr) return nullptr;
  if (!block->mapped) {
    if (IsWholeReservation(block) && block->size < params.size) {
      // PyTorch requests all of its pages, more than the device has, and has no next block to
      // continue with. No real device can provide them.
      const Bytes page = ReservationOf(*block).page;
      if (device_.MapPages(block->address, block->size, page)) {
        device_.UnmapPages(block->address, block->size, page);
      }
      Fire(Rule::kMapFailed);
      return nullptr;
    }
    if (!MapBlock(block, std::min(block->size, params.size), params)) return nullptr;
  } else {
    Fire(Rule::kMapExtends);
  }
  for (bool first = true; block->size < params.size; first = false) {
    if (!first) Fire(Rule::kMapSeveral);
    Block* next = block->next;
    if (!MapBlock(next, std::min(params.size - block->size, next->size), params)) return nullptr;
    block = next;
  }
  HomeOf(*block).Erase(block);
  return block;
}

bool CachingAllocator::MapBlock(Block* block, Bytes size, const Params& params) {
  StreamPool& home = HomeOf(*block);
  const Bytes page = ReservationOf(*block).page;
  const Bytes mapped = RoundUp(size, page);
  if (!device_.MapPages(block->address, mapped, page)) {
    Fire(Rule::kMapFailed);
    return false;
  }
  Fire(Rule::kMap);
  const Address begin = block->address;
  home.unmapped.erase(block);
  block->mapped = true;
  if (mapped < block->size) {
    Block* rest =
        NewBlock(begin + mapped, block->size - mapped, block->order + mapped.value(), home);
    rest->mapped = false;
    rest->SetReservation(block->reservation);
    rest->prev = block;
    rest->next = block->next;
    if (rest->next != nullptr) rest->next->prev = rest;
    block->next = rest;
    block->size = mapped;
    home.unmapped.insert(rest);
  }
  MergeWithNeighbours(block);
  home.Insert(block);
  total_ += mapped;
  CountReserved(*home.pool, mapped.signed_value());
  ++stats_.num_device_alloc;
  Event event;
  event.kind = EventKind::kSegmentMap;
  event.pool = home.pool->index();
  event.address = begin;
  event.size = mapped;
  event.block_size = mapped;
  event.stream = home.stream;
  event.text_or_stack = params.stack;
  params.out->OnEvent(event);
  if (params.stack != kNoStack && block->prev == nullptr && block->rest.segment_stack == kNoStack) {
    block->Rest().segment_stack = params.stack;
  }
  return true;
}

void CachingAllocator::MergeWithNeighbours(Block* block) {
  StreamPool& home = HomeOf(*block);
  const auto leaves_set = [&](Block* other) {
    if (other == nullptr || (block->mapped ? !other->is_free : other->mapped)) return false;
    if (other->mapped) {
      home.Erase(other);
    } else {
      home.unmapped.erase(other);
    }
    return true;
  };
  if (leaves_set(block->prev)) AbsorbPrev(block);
  if (leaves_set(block->next)) AbsorbNext(block);
}

void CachingAllocator::UnmapBlock(Block* block, uint32_t stack, Observer& out) {
  StreamPool& home = HomeOf(*block);
  const ExpandableSegment segment = ReservationOf(*block);
  const Bytes offset = block->address - segment.base;
  const Address begin = segment.base + RoundUp(offset, segment.page);
  const Address end = segment.base + RoundDown(offset + block->size, segment.page);
  if (begin >= end) {
    Fire(Rule::kUnmapNothing);
    return;
  }
  Fire(Rule::kUnmap);
  const Bytes size = end - begin;
  device_.StreamDone(home.stream);  // PyTorch waits for the stream before it takes pages away
  progressed_.push_back(home.stream);
  device_.UnmapPages(begin, size, segment.page);
  home.Erase(block);
  if (begin > block->address) {
    Fire(Rule::kUnmapHead);
    Block* head = NewBlock(block->address, begin - block->address, block->order, home);
    head->SetReservation(block->reservation);
    if (block->has_rest) TakeSegmentFrom(*block, head);
    head->prev = block->prev;
    if (head->prev != nullptr) head->prev->next = head;
    head->next = block;
    block->prev = head;
    home.Insert(head);
  }
  if (end < block->end()) {
    Fire(Rule::kUnmapTail);
    const uint64_t order = block->order + (end - block->address).value();
    Block* tail = NewBlock(end, block->end() - end, order, home);
    tail->SetReservation(block->reservation);
    tail->next = block->next;
    if (tail->next != nullptr) tail->next->prev = tail;
    tail->prev = block;
    block->next = tail;
    home.Insert(tail);
  }
  if (order_is_place()) block->order += (begin - block->address).value();
  block->address = begin;
  block->size = size;
  block->mapped = false;
  MergeWithNeighbours(block);
  home.unmapped.insert(block);

  total_ -= size;
  CountReserved(*home.pool, -size.signed_value());
  if (PrivatePool* owner = home.pool->owner();
      owner != nullptr && profile_.private_pools_expandable) {
    if (owner->cuda_malloc_count <= 0) {
      failure_ = absl::InternalError("cudaMalloc_count > 0: internal assertion on unmapping");
      return;
    }
    --owner->cuda_malloc_count;
  }
  ++stats_.num_device_free;
  Event event;
  event.kind = EventKind::kSegmentUnmap;
  event.pool = home.pool->index();
  event.address = begin;
  event.size = size;
  event.block_size = size;
  event.stream = home.stream;
  event.text_or_stack = stack;
  out.OnEvent(event);
}

void CachingAllocator::ReleaseExpandableSegment(Block* block) {
  // PyTorch asserts at this point that the block is the whole reservation; a block without a page
  // of its own can be alone only if it is.
  Fire(Rule::kReleaseReservation);
  const ExpandableSegment segment = ReservationOf(*block);
  unused_reservations_.push_back(block->reservation);
  HomeOf(*block).unmapped.erase(block);
  DeleteBlock(block);
  device_.ReleaseRange(segment.base, segment.size);
}

}  // namespace memreplay

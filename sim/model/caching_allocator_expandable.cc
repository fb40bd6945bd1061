// Expandable segments: an address reservation whose pages are mapped and
// unmapped as needed.
#include <algorithm>
#include <memory>

#include "sim/model/caching_allocator.h"
#include "sim/settings/size_rules.h"

namespace memreplay {
namespace {

// May become part of an allocation: cached, or without pages.
bool IsUsable(const Block* block) {
  return block != nullptr && !block->allocated && block->event_count == 0 &&
         !block->has_stream_uses();
}

bool IsWholeReservation(const Block* block) {
  return block->prev == nullptr && block->next == nullptr;
}

}  // namespace

Bytes CachingAllocator::PageSize(const BlockPool& pool) const {
  return pool.is_large() ? config_.large_segment_size : kSmallBuffer;
}

Block* CachingAllocator::FindExpandableBlock(const Params& params) {
  for (Block* unmapped : params.pool->unmapped_of(params.stream)) {
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
  reservations_.push_back(std::make_unique<ExpandableSegment>(
      ExpandableSegment{device_.ReserveRange(size), page, size}));
  const Address base = reservations_.back()->base;
  Block* block = NewBlock(base, size, OrderOfSegment(base, size), params.pool, params.stream);
  block->mapped = false;
  block->expandable = reservations_.back().get();
  params.pool->unmapped_of(params.stream).insert(block);
  return block;
}

Block* CachingAllocator::TryAllocateExpandableBlock(const Params& params) {
  Block* block = FindExpandableBlock(params);
  if (block == nullptr) return nullptr;
  if (!block->mapped) {
    if (IsWholeReservation(block) && block->size < params.size) {
      // PyTorch asks for all of its pages, more than the device has, and has no
      // next block to go on with. A device that gives them is none of silicon.
      const Bytes page = block->expandable->page;
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
  params.pool->Erase(block);
  return block;
}

bool CachingAllocator::MapBlock(Block* block, Bytes want, const Params& params) {
  BlockPool& pool = *block->pool;
  const Bytes page = block->expandable->page;
  const Bytes mapped = RoundUp(want, page);
  if (!device_.MapPages(block->address, mapped, page)) {
    Fire(Rule::kMapFailed);
    return false;
  }
  Fire(Rule::kMap);
  const Address begin = block->address;
  UnmappedSet& unmapped = pool.unmapped_of(block->stream);
  unmapped.erase(block);
  block->mapped = true;
  if (mapped < block->size) {
    Block* rest = NewBlock(begin + mapped, block->size - mapped, block->order + mapped.value(),
                           &pool, block->stream);
    rest->mapped = false;
    rest->expandable = block->expandable;
    rest->prev = block;
    rest->next = block->next;
    if (rest->next != nullptr) rest->next->prev = rest;
    block->next = rest;
    block->size = mapped;
    unmapped.insert(rest);
  }
  TryMerge(block, block->prev);
  TryMerge(block, block->next);
  pool.Insert(block);
  total_ += mapped;
  CountReserved(pool, mapped.signed_value());
  ++stats_.num_device_alloc;
  Event event;
  event.kind = EventKind::kSegmentMap;
  event.pool = pool.index();
  event.address = begin;
  event.size = mapped;
  event.block_size = mapped;
  event.stream = block->stream;
  event.text_or_stack = params.stack;
  params.out->OnEvent(event);
  if (block->prev == nullptr && block->segment_stack == kNoStack) {
    block->segment_stack = params.stack;
  }
  return true;
}

void CachingAllocator::UnmapBlock(Block* block, uint32_t stack, Observer& out) {
  BlockPool& pool = *block->pool;
  const ExpandableSegment& segment = *block->expandable;
  const Bytes offset = block->address - segment.base;
  const Address begin = segment.base + RoundUp(offset, segment.page);
  const Address end = segment.base + RoundDown(offset + block->size, segment.page);
  if (begin >= end) {
    Fire(Rule::kUnmapNothing);
    return;
  }
  Fire(Rule::kUnmap);
  const Bytes size = end - begin;
  device_.StreamDone(block->stream);  // PyTorch waits for the stream before it takes pages away
  device_.UnmapPages(begin, size, segment.page);
  pool.Erase(block);
  if (begin > block->address) {
    Fire(Rule::kUnmapHead);
    Block* head =
        NewBlock(block->address, begin - block->address, block->order, &pool, block->stream);
    head->expandable = block->expandable;
    head->segment_stack = block->segment_stack;
    head->prev = block->prev;
    if (head->prev != nullptr) head->prev->next = head;
    head->next = block;
    block->prev = head;
    pool.Insert(head);
  }
  if (end < block->end()) {
    Fire(Rule::kUnmapTail);
    const uint64_t order = block->order + (end - block->address).value();
    Block* tail = NewBlock(end, block->end() - end, order, &pool, block->stream);
    tail->expandable = block->expandable;
    tail->next = block->next;
    if (tail->next != nullptr) tail->next->prev = tail;
    tail->prev = block;
    block->next = tail;
    pool.Insert(tail);
  }
  if (order_is_place()) block->order += (begin - block->address).value();
  block->address = begin;
  block->size = size;
  block->mapped = false;
  TryMerge(block, block->prev);
  TryMerge(block, block->next);
  pool.unmapped_of(block->stream).insert(block);

  total_ -= size;
  CountReserved(pool, -size.signed_value());
  if (PrivatePool* owner = pool.owner(); owner != nullptr && profile_.private_pools_expandable) {
    if (owner->cuda_malloc_count <= 0) {
      failure_ = absl::InternalError("cudaMalloc_count > 0: internal assertion on unmapping");
      return;
    }
    --owner->cuda_malloc_count;
  }
  ++stats_.num_device_free;
  Event event;
  event.kind = EventKind::kSegmentUnmap;
  event.pool = pool.index();
  event.address = begin;
  event.size = size;
  event.block_size = size;
  event.stream = block->stream;
  event.text_or_stack = stack;
  out.OnEvent(event);
}

void CachingAllocator::ReleaseExpandableSegment(Block* block) {
  // PyTorch asserts that the block is the whole reservation by then; a block
  // without a page of its own can be alone only if it is.
  Fire(Rule::kReleaseReservation);
  ExpandableSegment* segment = block->expandable;
  block->pool->unmapped_of(block->stream).erase(block);
  DeleteBlock(block);
  device_.ReleaseRange(segment->base, segment->size);
  std::erase_if(reservations_, [segment](const auto& owned) { return owned.get() == segment; });
}

}  // namespace memreplay

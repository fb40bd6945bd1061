// Restores, lists and checks the caching allocator's state.
#include <algorithm>
#include <map>

#include "absl/container/flat_hash_map.h"
#include "sim/model/caching_allocator.h"
#include "sim/settings/size_rules.h"
#include "trace/value/check.h"

namespace memreplay {
namespace {

BlockInfo Describe(const Block& block) {
  BlockInfo info;
  info.address = block.address;
  info.size = block.size;
  info.requested_size = block.requested_size;
  info.state = block.allocated      ? BlockState::kAllocated
               : block.is_pending() ? BlockState::kPendingFree
                                    : BlockState::kInactive;
  info.id = block.id;
  info.stack = block.stack;
  return info;
}

// The current values of the statistics, computed from the segments.
struct Sums {
  int64_t allocation = 0, allocated_bytes = 0, active = 0, active_bytes = 0;
  int64_t inactive_split = 0, inactive_split_bytes = 0, requested_bytes = 0;
  int64_t segment = 0, reserved_bytes = 0;
};

}  // namespace

void CachingAllocator::Restore(const MemoryState& state, const RestoreHints& hints) {
  absl::flat_hash_map<uint64_t, uint32_t> stream_index;
  for (uint32_t i = 0; i < streams_.size(); ++i) stream_index.emplace(streams_[i].value(), i);
  // The last block of the reservation that each (pool, stream) is filling.
  std::map<std::pair<BlockPool*, uint32_t>, Block*> last_expandable;

  const auto rank = [&hints](uint64_t number) {
    return number < hints.tie_ranks.size() ? hints.tie_ranks[number] : number;
  };
  const auto reservation_size = [this](const SegmentInfo& segment) {
    const Bytes page = PageSize(segment.is_large ? large_ : small_);
    return std::max(RoundUp(ExpandableReservation(device_.TotalMemory(), config_), page),
                    RoundUp(segment.total_size, page) + page);
  };
  // Segments or blocks are numbered; each number gets as many orders as the longest one needs.
  uint64_t stride = 1;
  if (profile_.free_tie == FreeTie::kSegmentAge) {
    for (const SegmentInfo& segment : state) {
      const Bytes extent = segment.is_expandable ? reservation_size(segment) : segment.total_size;
      stride = std::max(stride, extent.value());
    }
    next_order_ = stride;
  }
  const auto new_block = [&](Address address, Bytes size, uint64_t order, BlockPool* pool,
                             uint32_t stream) {
    Block* block = NewBlock(address, size, order, pool->of(stream));
    if (!order_is_place()) block->order = rank(block->order);
    return block;
  };

  for (const SegmentInfo& segment : state) {
    const auto found = stream_index.find(segment.stream.value());
    MEMREPLAY_CHECK(found != stream_index.end(), "restored segment on an unknown stream");
    const uint32_t stream = found->second;
    BlockPool* pool = segment.is_large ? &large_ : &small_;
    PrivatePool* owner = nullptr;
    if (!segment.pool_id.is_default()) {
      const auto it = std::find(pool_ids_.begin(), pool_ids_.end(), segment.pool_id);
      MEMREPLAY_CHECK(it != pool_ids_.end(), "restored segment in an unknown pool");
      const auto index = static_cast<uint16_t>(it - pool_ids_.begin());
      owner = FindPool(index) != nullptr ? FindPool(index) : &CreatePool(index);
      // Mapped ranges count as the largest number of pieces in which they can be unmapped.
      owner->cuda_malloc_count +=
          segment.is_expandable
              ? static_cast<int64_t>(segment.total_size.value() / kSmallBuffer.value())
              : 1;
      pool = segment.is_large ? &owner->large : &owner->small;
    }

    uint32_t reservation = 0;
    Block* prev = nullptr;
    uint64_t order_at_0 = 0;  // added to an address, gives an order; it may wrap around
    if (profile_.free_tie == FreeTie::kSegmentAge) {
      // The file does not contain the order in which its segments were created.
      order_at_0 = rank(next_order_ / stride) * stride - segment.address.value();
      next_order_ += stride;
    }
    if (segment.is_expandable) {
      Block*& last = last_expandable[{pool, stream}];
      if (last != nullptr && segment.address + segment.total_size <= last->end()) {
        // This is another range of the same reservation; the hole before it has no pages.
        reservation = last->reservation;
        order_at_0 = last->order - last->address.value();
        const Bytes hole = segment.address - last->address;
        pool->of(stream).unmapped.erase(last);
        if (hole > Bytes(0)) {
          last->size = hole;
          pool->of(stream).unmapped.insert(last);
          prev = last;
        }
      } else {
        reservation = AddReservation({segment.address, PageSize(*pool), reservation_size(segment)});
      }
    } else {
      stats_.segment.Increase(segment.is_large, 1);
      if (segment.total_size >= config_.max_split_size) stats_.oversize_segments.Increase(1);
    }
    total_ += segment.total_size;
    CountReserved(*pool, segment.total_size.signed_value());

    for (const BlockInfo& info : segment.blocks) {
      Block* block =
          new_block(info.address, info.size, order_at_0 + info.address.value(), pool, stream);
      block->requested_size = info.requested_size;
      block->SetReservation(reservation);
      block->prev = prev;
      if (prev != nullptr)
        prev->next = block;
      else
        block->Rest().segment_stack = segment.stack;
      prev = block;
      const int64_t size = info.size.signed_value();
      if (info.state == BlockState::kInactive) {
        pool->of(stream).Insert(block);
        if (segment.blocks.size() > 1 && reservation == 0) {
          stats_.inactive_split.Increase(segment.is_large, 1);
          stats_.inactive_split_bytes.Increase(segment.is_large, size);
        }
        continue;
      }
      block->id = info.id;
      block->stack = info.stack;
      const int64_t requested = info.requested_size.signed_value();
      if (info.state == BlockState::kPendingFree) {
        stats_.KeepActiveApart();
        stats_.active.Add(pool->part(), 1);
        stats_.active_bytes.Add(pool->part(), size);
        stats_.requested_bytes.Add(pool->part(), requested);
        block->Rest().event_count = 1;
        progressed_.push_back(info.pending_stream);
        pending_.TryEmplace(KeyOf(info.pending_stream))
            .emplace_back(device_.RecordEvent(info.pending_stream), block);
        continue;
      }
      block->allocated = true;
      if (info.id != kNoAllocation) {
        if (info.id >= live_.size()) live_.resize(info.id + 1, nullptr);
        live_[info.id] = block;
      }
      stats_.CountAllocation(pool->part(), size, requested);
      if (info.size >= config_.max_split_size) stats_.oversize_allocations.Increase(1);
    }
    if (reservation != 0) {
      // The rest of the reservation, without pages, is behind the mapped range.
      const Address end = segment.address + segment.total_size;
      const ExpandableSegment& whole = reservations_[reservation - 1];
      Block* rest =
          new_block(end, (whole.base + whole.size) - end, order_at_0 + end.value(), pool, stream);
      rest->mapped = false;
      const auto request = hints.unmapped_requests.find(end.value());
      if (request != hints.unmapped_requests.end()) rest->requested_size = request->second;
      rest->SetReservation(reservation);
      rest->prev = prev;
      if (prev != nullptr) prev->next = rest;
      pool->of(stream).unmapped.insert(rest);
      last_expandable[{pool, stream}] = rest;
    }
  }
  if (tie_guide_ != nullptr) tie_guide_->OnRestore(next_order_ / stride - 1, stride);
}

MemoryState CachingAllocator::Segments() const {
  MemoryState segments;
  for (const Block& head : slab_) {
    // A segment starts at a mapped block with nothing, or no pages, before it.
    if (!head.in_use() || !head.mapped || (head.prev != nullptr && head.prev->mapped)) continue;
    SegmentInfo& segment = segments.emplace_back();
    segment.address = head.address;
    const StreamPool& home = HomeOf(head);
    segment.stream =
        home.stream < streams_.size() ? streams_[home.stream] : StreamHandle(home.stream);
    segment.pool_id = pool_ids_[home.pool->index()];
    segment.is_large = home.pool->is_large();
    segment.is_expandable = head.is_expandable;
    segment.stack = head.rest.segment_stack;
    for (const Block* block = &head; block != nullptr && block->mapped; block = block->next) {
      segment.blocks.push_back(Describe(*block));
      segment.total_size += block->size;
    }
  }
  std::sort(segments.begin(), segments.end(),
            [](const SegmentInfo& a, const SegmentInfo& b) { return a.address < b.address; });
  return segments;
}

void CachingAllocator::VisitFreeBlocks(
    absl::FunctionRef<void(const memreplay::FreeBlock&)> visit) const {
  const auto visit_pool = [this, visit](const BlockPool& pool) {
    pool.VisitFreeBlocks([&](const Block* block) {
      visit({block->address, block->size, HomeOf(*block).stream, pool.index(), pool.is_large(),
             block->is_split(), block->is_expandable});
    });
  };
  visit_pool(small_);
  visit_pool(large_);
  for (const PrivatePool* pool : pool_by_index_) {
    if (pool == nullptr) continue;
    visit_pool(pool->small);
    visit_pool(pool->large);
  }
}

void CachingAllocator::CheckInvariants() const {
  stats_.Settle();
  Sums all;
  Sums large;
  Bytes total;
  for (const Block& block : slab_) {
    if (!block.in_use()) continue;
    if (block.next != nullptr) {
      MEMREPLAY_CHECK(block.next->prev == &block, "neighbours do not point at each other");
      MEMREPLAY_CHECK(block.end() == block.next->address, "neighbours do not touch");
      MEMREPLAY_CHECK(
          block.home == block.next->home && block.reservation == block.next->reservation,
          "neighbours differ in pool, stream or segment");
      MEMREPLAY_CHECK(!block.is_free || !block.next->is_free, "two cached neighbours not merged");
      MEMREPLAY_CHECK(block.mapped || block.next->mapped, "two unmapped neighbours not merged");
    }
    const StreamPool& home = HomeOf(block);
    MEMREPLAY_CHECK(home.free.Contains(&block) == block.is_free, "free set and block disagree");
    MEMREPLAY_CHECK(block.is_free != (block.allocated || block.is_pending() || !block.mapped),
                    "a block is neither cached, active nor unmapped");
    if (!block.mapped) {
      const Address base = ReservationOf(block).base;
      const Bytes page = ReservationOf(block).page;
      MEMREPLAY_CHECK((block.address - base).value() % page.value() == 0 &&
                          block.size.value() % page.value() == 0,
                      "an unmapped block is not made of whole pages");
      continue;
    }
    total += block.size;
    const int64_t size = block.size.signed_value();
    for (Sums* sums : {&all, home.pool->is_large() ? &large : nullptr}) {
      if (sums == nullptr) continue;
      sums->reserved_bytes += size;
      if (!block.is_expandable && block.prev == nullptr) ++sums->segment;
      if (block.is_free) {
        if (!block.is_expandable && block.is_split()) {
          ++sums->inactive_split;
          sums->inactive_split_bytes += size;
        }
        continue;
      }
      ++sums->active;
      sums->active_bytes += size;
      sums->requested_bytes += block.requested_size.signed_value();
      if (block.allocated) {
        ++sums->allocation;
        sums->allocated_bytes += size;
      }
    }
  }
  const auto check = [](const Sums& sums, const MemoryStats& s, Stat StatArray::*part) {
    MEMREPLAY_CHECK((s.allocation.*part).current() == sums.allocation, "allocation");
    MEMREPLAY_CHECK((s.allocated_bytes.*part).current() == sums.allocated_bytes, "allocated_bytes");
    MEMREPLAY_CHECK((s.active.*part).current() == sums.active, "active");
    MEMREPLAY_CHECK((s.active_bytes.*part).current() == sums.active_bytes, "active_bytes");
    MEMREPLAY_CHECK((s.inactive_split.*part).current() == sums.inactive_split, "inactive_split");
    MEMREPLAY_CHECK((s.inactive_split_bytes.*part).current() == sums.inactive_split_bytes,
                    "inactive_split_bytes");
    MEMREPLAY_CHECK((s.requested_bytes.*part).current() == sums.requested_bytes, "requested_bytes");
    MEMREPLAY_CHECK((s.segment.*part).current() == sums.segment, "segment");
    MEMREPLAY_CHECK((s.reserved_bytes.*part).current() == sums.reserved_bytes, "reserved_bytes");
  };
  check(all, stats_, &StatArray::all);
  check(large, stats_, &StatArray::large_pool);
  MEMREPLAY_CHECK(total == total_, "total_allocated_memory");
}

}  // namespace memreplay

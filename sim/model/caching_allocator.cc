#include "sim/model/caching_allocator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sim/settings/size_rules.h"

namespace memreplay {

CachingAllocator::CachingAllocator(const TorchProfile& profile, const AllocatorConfig& config,
                                   Device& device, CachingAllocatorOptions options)
    : profile_(profile),
      config_(config),
      device_(device),
      stream_order_(options.stream_order),
      streams_(std::move(options.streams)),
      pool_ids_(std::move(options.pools)),
      live_(options.allocation_count, nullptr),
      pool_by_index_(pool_ids_.size(), nullptr),
      no_split_(pool_ids_.size(), false),
      tie_guide_(options.tie_guide) {
  stats_.max_split_size = config_.max_split_size.signed_value();
  if (config_.per_process_memory_fraction < 1) {
    SetMemoryFraction(config_.per_process_memory_fraction).IgnoreError();
  }
}

CachingAllocator::~CachingAllocator() = default;

absl::Status CachingAllocator::ApplySettings(std::string_view conf) {
  return ParseAllocatorConf(conf, profile_, &config_);
}

absl::Status CachingAllocator::SetMemoryFraction(double fraction) {
  if (!(fraction >= 0 && fraction <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("invalid memory fraction ", fraction, ": expected 0 to 1"));
  }
  if (fraction >= 1 && !profile_.fraction_sticky) {
    limit_.reset();
  } else {
    const auto total = static_cast<double>(device_.TotalMemory().value());
    limit_ = Bytes(static_cast<uint64_t>(fraction * total));
  }
  return absl::OkStatus();
}

absl::Status CachingAllocator::ApplyRare(const Event& request, Observer& out) {
  switch (request.kind) {
    case EventKind::kRecordStream:
      out.OnEvent(request);
      RecordStream(request);
      return absl::OkStatus();
    case EventKind::kStreamDone:
      out.OnEvent(request);
      device_.StreamDone(request.stream);
      return absl::OkStatus();
    case EventKind::kEmptyCache: out.OnEvent(request); return EmptyCache(request, out);
    case EventKind::kFailNext:
      out.OnEvent(request);
      device_.FailNext(request.fail_count());
      return absl::OkStatus();
    case EventKind::kPoolCreate:
      out.OnEvent(request);
      return PoolCreate(request.pool, request.pool_flags());
    case EventKind::kPoolForget:
      out.OnEvent(request);
      use_on_oom_.Erase(PoolKey(pool_ids_[request.pool]));
      return absl::OkStatus();
    case EventKind::kPoolBegin: out.OnEvent(request); return PoolBegin(request.pool);
    case EventKind::kPoolEnd: out.OnEvent(request); return PoolEnd(request.pool);
    case EventKind::kPoolRelease: out.OnEvent(request); return PoolRelease(request.pool);
    case EventKind::kResetPeak:
      out.OnEvent(request);
      stats_.ResetPeak();
      return absl::OkStatus();
    case EventKind::kResetAccumulated:
      out.OnEvent(request);
      stats_.ResetAccumulated();
      return absl::OkStatus();
    case EventKind::kOutsideAlloc:
      out.OnEvent(request);
      device_.TakeOutside(request.size);
      return absl::OkStatus();
    case EventKind::kOutsideFree:
      out.OnEvent(request);
      device_.ReturnOutside(request.size);
      return absl::OkStatus();
    default: out.OnEvent(request); return absl::OkStatus();
  }
}

Block* CachingAllocator::Malloc(const Event& request, Observer& out, absl::Status& result) {
  if (request.id >= live_.size()) live_.resize(request.id + 1, nullptr);
  if (request.size >= kTooLarge) {
    result = absl::ResourceExhaustedError("Tried to allocate more than 1EB memory");
    return nullptr;
  }
  if (request.size == Bytes(0)) return nullptr;  // as PyTorch does

  Params params;
  params.in_capture = in_capture() || IsRecordedInCapture(request.pool);
  if (!params.in_capture && (!pending_.empty() || !deferred_.empty())) {
    ProcessEvents(request.text_or_stack, out);
  }
  params.requested = request.size;
  params.size = RoundSize(request.size, config_, profile_);
  if (params.size != std::max(kMinBlockSize, RoundUp(request.size, kMinBlockSize))) {
    Fire(Rule::kDivisionRounding);
  }
  params.pool = SelectPool(request, params.size);
  if (params.pool == nullptr) {
    result = absl::FailedPreconditionError(
        "it1 != graph_pools.end(): internal assertion, the pool being filled was released");
    return nullptr;
  }
  params.stream = request.stream;
  params.expandable = config_.expandable_segments;
  params.id = request.id;
  params.stack = request.text_or_stack;
  params.out = &out;

  Block* block = GetFreeBlock(params);
  if (block == nullptr) {
    if (garbage_collection_on()) CollectGarbage(params);
    block = AllocBlock(params, /*retry=*/false);
    if (block == nullptr) block = AllocByReleasing(params);
  }
  if (!failure_.ok()) {
    result = std::exchange(failure_, absl::OkStatus());
    return nullptr;
  }
  if (block == nullptr) {
    Fire(Rule::kOutOfMemory);
    Event oom;
    oom.pool = params.pool->index();
    oom.id = request.id;
    oom.set_oom(device_.FreeMemory());
    oom.size = params.size;
    oom.stream = params.stream;
    oom.text_or_stack = params.stack;
    out.OnEvent(oom);
    ++stats_.num_ooms;
    return nullptr;
  }
  return TakeBlock(block, ShouldSplit(*block, params), params);
}

// What malloc tries once the device has refused, in this order. Stops at an
// assertion of PyTorch's (failure_).
Block* CachingAllocator::AllocByReleasing(Params& params) {
  Block* block = nullptr;
  if (!failure_.ok()) return nullptr;
  if (profile_.use_on_oom == UseOnOom::kBeforeRelease) block = UseOnOomPools(params);
  if (block == nullptr && failure_.ok() && ReleaseAvailable(params) && failure_.ok()) {
    block = AllocBlock(params, /*retry=*/false);
  }
  if (block == nullptr && failure_.ok()) {
    if (params.in_capture) {
      Fire(Rule::kFlushSkippedInPool);
    } else {
      Fire(Rule::kFlushRetry);
      ReleaseCachedBlocks(0, params.stack, *params.out);
      if (failure_.ok()) block = AllocBlock(params, /*retry=*/true);
      if (block != nullptr) Fire(Rule::kFlushRetryServed);
    }
  }
  if (block == nullptr && failure_.ok() && profile_.use_on_oom == UseOnOom::kLast) {
    block = UseOnOomPools(params);
  }
  return block;
}

BlockPool* CachingAllocator::SelectPool(const Event& request, Bytes size) {
  PrivatePool* pool = nullptr;
  if (request.pool != 0) {  // a recording says so
    pool = FindPool(request.pool);
    if (pool == nullptr) pool = &CreatePool(request.pool);
  } else if (!captures_.empty()) {
    pool = FindPool(profile_.newest_pool_first ? captures_.back() : captures_.front());
    if (pool == nullptr) return nullptr;
  }
  if (pool != nullptr) Fire(Rule::kPrivatePoolUsed);
  if (IsSmall(size)) return pool != nullptr ? &pool->small : &small_;
  return pool != nullptr ? &pool->large : &large_;
}

[[gnu::always_inline]] inline Block* CachingAllocator::GetFreeBlock(const Params& params) {
  BlockPool& pool = *params.pool;
  if (garbage_collection_on()) ++pool.lookups;
  const FreeSet& set = pool.free_of(params.stream);
  Block* block = set.LowerBound(params.size);
  if (tie_guide_ != nullptr && block != nullptr) [[unlikely]] {
    block = tie_guide_->Choose(block, set);
  }
  if (block != nullptr && block->expandable != nullptr) {
    if (params.expandable) {
      // A block at the end of the mapped range counts with the room behind it,
      // so that a hole is used before the range's end.
      const auto room = [](const Block* b) {
        return b->size + (b->next != nullptr && !b->next->mapped ? b->next->size : Bytes(0));
      };
      while (block->expandable != nullptr) {
        Block* next = set.Next(block);
        if (next == nullptr || room(next) >= room(block)) break;
        Fire(Rule::kExpandableRoomWalk);
        block = next;
      }
    } else {
      Fire(Rule::kExpandableSkipped);
      do {
        block = set.Next(block);
      } while (block != nullptr && block->expandable != nullptr);
    }
  }
  if (block == nullptr) {
    Fire(Rule::kFreeBlockNone);
    return nullptr;
  }
  if (params.size < config_.max_split_size) {
    if (block->size >= config_.max_split_size) {
      Fire(Rule::kOversizeBlockForSmaller);
      return nullptr;
    }
  } else if (block->size >= params.size + config_.max_non_split_rounding) {
    Fire(Rule::kOversizeBlockTooLarge);
    return nullptr;
  }
  Fire(Rule::kFreeBlockFound);
  pool.Erase(block);
  return block;
}

Block* CachingAllocator::AllocBlock(const Params& params, bool retry) {
  if (retry) ++stats_.num_alloc_retries;
  BlockPool& pool = *params.pool;
  const Bytes segment_size = AllocationSize(params.size, config_);
  if (limit_.has_value() && total_ + segment_size > *limit_) {
    Fire(Rule::kLimitRefused);
    return nullptr;
  }
  if (config_.throw_on_cudamalloc_oom && total_ + segment_size > RejectionLimit()) {
    Fire(Rule::kRejectedEarly);
    ++stats_.num_oom_rejections;
    failure_ = absl::ResourceExhaustedError(
        absl::StrCat("throw_on_cudamalloc_oom: ", segment_size.value(), " bytes more than the ",
                     total_.value(), " in use would exceed the share of the device's memory"));
    return nullptr;
  }
  PrivatePool* owner = pool.owner();
  if (params.expandable && (owner == nullptr || profile_.private_pools_expandable)) {
    Block* block = TryAllocateExpandableBlock(params);
    if (block != nullptr && owner != nullptr) ++owner->cuda_malloc_count;
    return block;
  }
  const std::optional<Address> address = device_.AllocateSegment(segment_size);
  if (!address.has_value()) {
    Fire(Rule::kSegmentAllocFailed);
    return nullptr;
  }
  Fire(Rule::kSegmentAlloc);
  if (owner != nullptr) ++owner->cuda_malloc_count;
  total_ += segment_size;
  Block* block = NewBlock(*address, segment_size, OrderOfSegment(*address, segment_size), &pool,
                          params.stream);
  stats_.segment.Increase(pool.is_large(), 1);
  CountReserved(pool, segment_size.signed_value());
  if (segment_size >= config_.max_split_size) stats_.oversize_segments.Increase(1);
  ++stats_.num_device_alloc;
  block->segment_stack = params.stack;
  params.out->OnEvent(EventOf(EventKind::kSegmentAlloc, *block, block->size, params.stack));
  return block;
}

Bytes CachingAllocator::RejectionLimit() const {
  const auto total = static_cast<double>(device_.TotalMemory().value());
  return Bytes(static_cast<uint64_t>(config_.per_process_memory_fraction * total));
}

[[gnu::always_inline]] inline bool CachingAllocator::ShouldSplit(const Block& block,
                                                                 const Params& params) {
  if (IsNoSplit(*block.pool)) {
    Fire(Rule::kNoSplitPool);
    return false;
  }
  const Bytes remainder = block.size - params.size;
  if (!block.pool->is_large() || params.expandable) {
    const bool split = remainder >= kMinBlockSize;
    if (split) Fire(params.expandable ? Rule::kSplitExpandable : Rule::kSplitSmall);
    return split;
  }
  if (params.size >= config_.max_split_size) {
    Fire(Rule::kNoSplitOversize);
    return false;
  }
  const bool split = remainder > kSmallSize;
  Fire(split ? Rule::kSplitLarge : Rule::kNoSplitRemainder);
  return split;
}

[[gnu::always_inline]] inline Block* CachingAllocator::TakeBlock(Block* block, bool split,
                                                                 const Params& params) {
  BlockPool& pool = *block->pool;
  const StatArray::Part part = pool.part();
  const bool was_split = block->is_split();
  if (split) {
    Block* remainder = block;
    block = NewBlock(remainder->address, params.size, remainder->order, &pool, remainder->stream);
    block->expandable = remainder->expandable;
    block->segment_stack = remainder->segment_stack;
    block->prev = remainder->prev;
    if (block->prev != nullptr) block->prev->next = block;
    block->next = remainder;
    remainder->prev = block;
    remainder->address = remainder->address + params.size;
    if (order_is_place()) remainder->order += params.size.value();
    remainder->size -= params.size;
    pool.Insert(remainder);
    if (block->expandable == nullptr) {
      if (was_split) {
        stats_.inactive_split_bytes.Decrease(part, params.size.signed_value());
      } else {
        stats_.inactive_split_bytes.Increase(part, remainder->size.signed_value());
        stats_.inactive_split.Increase(part, 1);
      }
    }
  } else if (was_split && block->expandable == nullptr) {
    stats_.inactive_split_bytes.Decrease(part, block->size.signed_value());
    stats_.inactive_split.Decrease(part, 1);
  }
  block->allocated = true;
  block->requested_size = params.requested;
  block->stack = params.stack;
  block->id = params.id;
  live_[params.id] = block;
  const int64_t size = block->size.signed_value();
  stats_.allocation.Increase(part, 1);
  stats_.allocated_bytes.Increase(part, size);
  stats_.active.Increase(part, 1);
  stats_.active_bytes.Increase(part, size);
  stats_.requested_bytes.Increase(part, params.requested.signed_value());
  if (block->size >= config_.max_split_size) stats_.oversize_allocations.Increase(1);
  return block;
}

Block* CachingAllocator::UseOnOomPools(Params& params) {
  if (params.pool->owner() != nullptr) return nullptr;
  for (size_t slot = use_on_oom_.Next(0); slot < use_on_oom_.slot_count();
       slot = use_on_oom_.Next(slot + 1)) {
    // PyTorch begins an allocation to the pool and ends it again: a pool that
    // is gone is made anew for the moment, one that was released is an assertion.
    const uint16_t index = use_on_oom_.value_at(slot);
    PrivatePool* pool = FindPool(index);
    if (pool == nullptr) {
      pool = &CreatePool(index);
      pool->use_count = 0;
      freeable_.TryEmplace(PoolKey(pool->id), pool);
    } else if (pool->use_count <= 0) {
      failure_ = absl::InternalError("use_count > 0: internal assertion on a use-on-OOM pool");
      return nullptr;
    }
    Params fallback = params;
    fallback.pool = params.pool->is_large() ? &pool->large : &pool->small;
    fallback.expandable = false;
    if (Block* block = GetFreeBlock(fallback); block != nullptr) {
      Fire(Rule::kUseOnOom);
      params = fallback;
      return block;
    }
  }
  return nullptr;
}

Block* CachingAllocator::BeginFree(AllocationId id) {
  Block* block = id < live_.size() ? live_[id] : nullptr;
  if (block == nullptr) return nullptr;
  live_[id] = nullptr;
  block->allocated = false;
  const StatArray::Part part = block->pool->part();
  stats_.allocation.Decrease(part, 1);
  stats_.allocated_bytes.Decrease(part, block->size.signed_value());
  if (block->size >= config_.max_split_size) stats_.oversize_allocations.Decrease(1);
  return block;
}

void CachingAllocator::FinishFree(Block* block) {
  if (!block->has_stream_uses()) {
    Fire(Rule::kFreeAtOnce);
    Cache(block);
  } else if (in_capture()) {
    Fire(Rule::kFreeDeferred);
    deferred_.push_back(block);
  } else {
    Fire(Rule::kFreeWaits);
    InsertEvents(block);
  }
}

void CachingAllocator::FreeBlock(Block* block, uint32_t stack, Observer& out) {
  out.OnEvent(EventOf(EventKind::kFreeCompleted, *block, block->requested_size, stack));
  Cache(block);
}

void CachingAllocator::Cache(Block* block) {
  block->stack = kNoStack;
  block->id = kNoAllocation;
  const Bytes size = block->size;
  const Bytes requested = block->requested_size;
  const StatArray::Part part = block->pool->part();

  int64_t split_blocks = 0;
  int64_t split_bytes = 0;
  Block* const prev = block->prev;
  Block* const next = block->next;
  if (const Bytes absorbed = TryMerge(block, prev); absorbed > Bytes(0)) {
    Fire(Rule::kMergePrev);
    --split_blocks;
    split_bytes -= absorbed.signed_value();
  }
  if (const Bytes absorbed = TryMerge(block, next); absorbed > Bytes(0)) {
    Fire(Rule::kMergeNext);
    --split_blocks;
    split_bytes -= absorbed.signed_value();
  }
  block->pool->Insert(block);
  if (block->is_split()) {
    ++split_blocks;
    split_bytes += block->size.signed_value();
  }
  if (block->expandable == nullptr) {
    if (split_blocks > 0) stats_.inactive_split.Increase(part, split_blocks);
    if (split_blocks < 0) stats_.inactive_split.Decrease(part, -split_blocks);
    if (split_bytes > 0) stats_.inactive_split_bytes.Increase(part, split_bytes);
    if (split_bytes < 0) stats_.inactive_split_bytes.Decrease(part, -split_bytes);
  }
  stats_.active.Decrease(part, 1);
  stats_.active_bytes.Decrease(part, size.signed_value());
  stats_.requested_bytes.Decrease(part, requested.signed_value());
}

inline Bytes CachingAllocator::TryMerge(Block* dst, Block* src) {
  if (src == nullptr || (dst->mapped ? !src->is_free : src->mapped)) return Bytes(0);
  BlockPool& pool = *dst->pool;
  if (src->mapped) {
    pool.Erase(src);
  } else {
    pool.unmapped_of(src->stream).erase(src);
  }
  if (dst->prev == src) {
    dst->address = src->address;
    if (order_is_place()) dst->order = src->order;
    dst->prev = src->prev;
    if (dst->prev != nullptr) dst->prev->next = dst;
    dst->segment_stack = src->segment_stack;
  } else {
    dst->next = src->next;
    if (dst->next != nullptr) dst->next->prev = dst;
  }
  const Bytes absorbed = src->size;
  dst->size += absorbed;
  DeleteBlock(src);
  return absorbed;
}

void CachingAllocator::CountReserved(const BlockPool& pool, int64_t change) {
  const auto count = [&pool, change](StatArray& array) {
    if (change >= 0) {
      array.Increase(pool.is_large(), change);
    } else {
      array.Decrease(pool.is_large(), -change);
    }
  };
  count(stats_.reserved_bytes);
  if (pool.owner() != nullptr) count(stats_.reserved_bytes_by_private_pools[pool.owner()->id]);
}

Block* CachingAllocator::NewBlock(Address address, Bytes size, uint64_t order, BlockPool* pool,
                                  uint32_t stream) {
  Block* block;
  if (unused_.empty()) {
    block = &slab_.emplace_back();
  } else {
    block = unused_.back();
    unused_.pop_back();
  }
  block->address = address;
  block->size = size;
  block->pool = pool;
  block->stream = stream;
  block->in_use = true;
  block->order = order_is_place() ? order : next_order_++;
  return block;
}

void CachingAllocator::DeleteBlock(Block* block) {
  *block = Block();
  unused_.push_back(block);
}

}  // namespace memreplay

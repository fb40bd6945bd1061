#include "sim/model/caching_allocator.h"

#include "absl/strings/str_cat.h"

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
  for (size_t pool = 1; pool < std::min(options.pool_flags.size(), pool_ids_.size()); ++pool) {
    SetFlags(static_cast<uint16_t>(pool), options.pool_flags[pool]);
  }
  NoteSettings();
  stats_.max_split_size = config_.max_split_size.signed_value();
  if (config_.per_process_memory_fraction < 1) {
    SetMemoryFraction(config_.per_process_memory_fraction).IgnoreError();
  }
}

CachingAllocator::~CachingAllocator() = default;

absl::Status CachingAllocator::ApplySettings(std::string_view conf) {
  absl::Status parsed = ParseAllocatorConf(conf, profile_, &config_);
  NoteSettings();
  return parsed;
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
  out.OnEvent(request);
  switch (request.kind) {
    case EventKind::kRecordStream: RecordStream(request); break;
    case EventKind::kStreamDone:
      device_.StreamDone(request.stream);
      if (!pending_.empty()) progressed_.push_back(request.stream);
      break;
    case EventKind::kEmptyCache: return EmptyCache(request, out);
    case EventKind::kPoolCreate: return PoolCreate(request.pool, request.pool_flags());
    case EventKind::kPoolForget: use_on_oom_.Erase(PoolKey(pool_ids_[request.pool])); break;
    case EventKind::kPoolBegin: return PoolBegin(request.pool);
    case EventKind::kPoolEnd: return PoolEnd(request.pool);
    case EventKind::kPoolRelease: return PoolRelease(request.pool);
    case EventKind::kResetPeak: ResetPeak(); break;
    case EventKind::kResetAccumulated:
      stats_.Settle();
      stats_.ResetAccumulated();
      break;
    case EventKind::kFailNext: device_.FailNext(request.fail_count()); break;
    case EventKind::kOutsideAlloc: device_.TakeOutside(request.size); break;
    case EventKind::kOutsideFree: device_.ReturnOutside(request.size); break;
    default: break;
  }
  return absl::OkStatus();
}

Block* CachingAllocator::Malloc(const Event& request, Observer& out, absl::Status& result) {
  if (request.size.value() - 1 >= kTooLarge.value() - 1) [[unlikely]] {
    if (request.size > Bytes(0)) {  // size 0 gets a null pointer
      result = absl::ResourceExhaustedError("Tried to allocate more than 1EB memory");
    }
    return nullptr;
  }
  Bytes size((request.size.value() + kMinBlockSize.value() - 1) & ~(kMinBlockSize.value() - 1));
  if (rounds_by_division_) [[unlikely]] {
    const Bytes rounded = RoundSize(request.size, config_, profile_);
    if (rounded != size) Fire(Rule::kDivisionRounding);
    size = rounded;
  }
  const bool expandable = config_.expandable_segments;
  bool in_capture = false;
  BlockPool* pool = IsSmall(size) ? &small_ : &large_;
  if (request.pool != 0 || !captures_.empty() || graph_capture_ || !pending_.empty() ||
      !deferred_.empty()) [[unlikely]] {
    pool = SelectPool(request, size, out, &in_capture);
    if (pool == nullptr) {
      result = absl::FailedPreconditionError(
          "it1 != graph_pools.end(): internal assertion, the pool being filled was released");
      return nullptr;
    }
  }

  StreamPool* home = &pool->of(request.stream);
  Block* block = GetFreeBlock(*home, size, expandable);
  if (block == nullptr) [[unlikely]] {
    Params params{.pool = pool,
                  .stream = request.stream,
                  .size = size,
                  .expandable = expandable,
                  .in_capture = in_capture,
                  .id = request.id,
                  .stack = request.text_or_stack,
                  .out = &out};
    block = AllocFromDevice(params);
    if (!failure_.ok()) {
      result = std::exchange(failure_, absl::OkStatus());
      return nullptr;
    }
    if (block == nullptr) return nullptr;
    block = Take(block, HomeOf(*block), size, params.expandable);
  } else {
    block = Take(block, *home, size, expandable);
  }
  block->allocated = true;
  block->requested_size = request.size;
  block->stack = request.text_or_stack;
  block->id = request.id;
  if (request.id >= live_.size()) [[unlikely]] {
    live_.resize(request.id + 1, nullptr);
  }
  live_[request.id] = block;
  stats_.CountAllocation(pool->part(), block->size.signed_value(), request.size.signed_value());
  if (block->size >= config_.max_split_size) stats_.oversize_allocations.Increase(1);
  return block;
}

Block* CachingAllocator::AllocFromDevice(Params& params) {
  if (garbage_collection_on()) CollectGarbage(params);
  Block* block = AllocBlock(params, /*retry=*/false);
  if (block == nullptr) block = AllocByReleasing(params);
  if (block != nullptr || !failure_.ok()) return block;
  Fire(Rule::kOutOfMemory);
  Event oom;
  oom.pool = params.pool->index();
  oom.id = params.id;
  oom.set_oom(device_.FreeMemory());
  oom.size = params.size;
  oom.stream = params.stream;
  oom.text_or_stack = params.stack;
  params.out->OnEvent(oom);
  ++stats_.num_ooms;
  return nullptr;
}

// Tries what malloc tries after the device has refused, in this order. Stops at an assertion of
// PyTorch (failure_).
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

BlockPool* CachingAllocator::SelectPool(const Event& request, Bytes size, Observer& out,
                                        bool* in_capture) {
  *in_capture = this->in_capture() || IsRecordedInCapture(request.pool);
  if (!*in_capture && (!pending_.empty() || !deferred_.empty())) {
    ProcessEvents(request.text_or_stack, out);
  }
  PrivatePool* pool = nullptr;
  if (request.pool != 0) {  // only a recording names a pool
    pool = FindPool(request.pool);
    if (pool == nullptr) pool = &CreatePool(request.pool);
  } else if (!captures_.empty()) {
    pool = FindPool(profile_.newest_pool_first ? captures_.back() : captures_.front());
    if (pool == nullptr) return nullptr;
  }
  if (pool == nullptr) return IsSmall(size) ? &small_ : &large_;
  Fire(Rule::kPrivatePoolUsed);
  return IsSmall(size) ? &pool->small : &pool->large;
}

[[gnu::always_inline]] inline Block* CachingAllocator::GetFreeBlock(StreamPool& home, Bytes size,
                                                                    bool expandable) {
  if (garbage_collection_on()) [[unlikely]] {
    ++home.pool->lookups;
  }
  Block* block = home.free.LowerBound(size);
  if (tie_guide_ != nullptr && block != nullptr) [[unlikely]] {
    block = tie_guide_->Choose(block, home.free);
  }
  if (block != nullptr && block->is_expandable && (!expandable || IsBeforeRoom(*block))) {
    block = GetFreeBlockAmongExpandable(block, home.free, expandable);
  }
  if (block == nullptr) {
    Fire(Rule::kFreeBlockNone);
    return nullptr;
  }
  if (size < config_.max_split_size) {
    if (block->size >= config_.max_split_size) {
      Fire(Rule::kOversizeBlockForSmaller);
      return nullptr;
    }
  } else if (block->size >= size + config_.max_non_split_rounding) {
    Fire(Rule::kOversizeBlockTooLarge);
    return nullptr;
  }
  Fire(Rule::kFreeBlockFound);
  home.Erase(block);
  return block;
}

Block* CachingAllocator::GetFreeBlockAmongExpandable(Block* block, const FreeSet& set,
                                                     bool expandable) {
  if (!expandable) {
    Fire(Rule::kExpandableSkipped);
    do {
      block = set.Next(block);
    } while (block != nullptr && block->is_expandable);
    return block;
  }
  // A block at the end of the mapped range counts together with the room behind it, so a hole is
  // used before the end of the range. If there is no room, none of the following blocks is smaller.
  const auto room = [](const Block* b) {
    return b->size + (IsBeforeRoom(*b) ? b->next->size : Bytes(0));
  };
  while (block->is_expandable) {
    Block* next = set.Next(block);
    if (next == nullptr || room(next) >= room(block)) break;
    Fire(Rule::kExpandableRoomWalk);
    block = next;
  }
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
    failure_ = absl::ResourceExhaustedError(absl::StrCat(
        "throw_on_cudamalloc_oom: ", segment_size.value(), " bytes more than the ", total_.value(),
        " in use would exceed the share of the device's memory that PyTorch may use"));
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
  Block* block = NewBlock(*address, segment_size, OrderOfSegment(*address, segment_size),
                          pool.of(params.stream));
  stats_.segment.Increase(pool.is_large(), 1);
  CountReserved(pool, segment_size.signed_value());
  if (segment_size >= config_.max_split_size) stats_.oversize_segments.Increase(1);
  ++stats_.num_device_alloc;
  if (params.stack != kNoStack) block->Rest().segment_stack = params.stack;
  params.out->OnEvent(EventOf(EventKind::kSegmentAlloc, *block, block->size, params.stack));
  return block;
}

Bytes CachingAllocator::RejectionLimit() const {
  const auto total = static_cast<double>(device_.TotalMemory().value());
  return Bytes(static_cast<uint64_t>(config_.per_process_memory_fraction * total));
}

[[gnu::always_inline]] inline bool CachingAllocator::ShouldSplit(const Block& block,
                                                                 const BlockPool& pool, Bytes size,
                                                                 bool expandable) {
  if (pool.owner() != nullptr && IsNoSplit(pool)) [[unlikely]] {
    Fire(Rule::kNoSplitPool);
    return false;
  }
  const bool is_large = pool.is_large() && !expandable;
  if (size >= config_.max_split_size && is_large) [[unlikely]] {
    Fire(Rule::kNoSplitOversize);
    return false;
  }
  const Bytes least = is_large ? kSmallSize + Bytes(1) : kMinBlockSize;
  const bool split = block.size - size >= least;
  if (split) {
    Fire(expandable ? Rule::kSplitExpandable : is_large ? Rule::kSplitLarge : Rule::kSplitSmall);
  } else if (is_large) {
    Fire(Rule::kNoSplitRemainder);
  }
  return split;
}

[[gnu::always_inline]] inline Block* CachingAllocator::Take(Block* block, StreamPool& home,
                                                            Bytes size, bool expandable) {
  const bool was_split = block->is_split();
  const bool split = ShouldSplit(*block, *home.pool, size, expandable);
  if (split) {
    Block* remainder = block;
    block = NewBlock(remainder->address, size, remainder->order, home);
    block->prev = remainder->prev;
    if (block->prev != nullptr) block->prev->next = block;
    block->next = remainder;
    remainder->prev = block;
    remainder->address = remainder->address + size;
    if (order_is_place()) remainder->order += size.value();
    remainder->size -= size;
    if (remainder->is_expandable) block->SetReservation(remainder->reservation);
    if (remainder->has_rest) TakeSegmentFrom(*remainder, block);
    home.Insert(remainder);
  }
  if (!block->is_expandable) {
    const StatArray::Part part = home.pool->part();
    if (was_split) {  // it was counted; now its remainder is
      stats_.inactive_split.Subtract(part, int64_t{!split});
      stats_.inactive_split_bytes.Subtract(part, block->size.signed_value());
    } else if (split) {
      stats_.inactive_split.Add(part, 1);
      stats_.inactive_split_bytes.Add(part, block->next->size.signed_value());
    }
  }
  return block;
}

Block* CachingAllocator::UseOnOomPools(Params& params) {
  if (params.pool->owner() != nullptr) return nullptr;
  for (size_t slot = use_on_oom_.Next(0); slot < use_on_oom_.slot_count();
       slot = use_on_oom_.Next(slot + 1)) {
    // PyTorch begins and ends an allocation to the pool: a pool that no longer exists is created
    // again for that time, and one that was released triggers an assertion.
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
    StreamPool& home = fallback.pool->of(fallback.stream);
    if (Block* block = GetFreeBlock(home, fallback.size, fallback.expandable); block != nullptr) {
      Fire(Rule::kUseOnOom);
      params = fallback;
      return block;
    }
  }
  return nullptr;
}

void CachingAllocator::Free(AllocationId id, Block* block) {
  live_[id] = nullptr;
  const bool waits = block->has_stream_uses();
  if (waits && !stats_.active_is_apart) stats_.KeepActiveApart();
  block->allocated = false;
  stats_.CountFree(HomeOf(*block).pool->part(), block->size.signed_value());
  if (block->size >= config_.max_split_size) stats_.oversize_allocations.Decrease(1);
  if (!waits) {
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

[[gnu::always_inline]] inline void CachingAllocator::Cache(Block* block) {
  block->stack = kNoStack;
  block->id = kNoAllocation;
  StreamPool& home = HomeOf(*block);
  const StatArray::Part part = home.pool->part();
  stats_.CountFreeCompleted(part, block->size.signed_value(), block->requested_size.signed_value());

  const Bytes freed = block->size;
  int64_t merged = 0;
  if (Block* const prev = block->prev; prev != nullptr && prev->is_free) {
    Fire(Rule::kMergePrev);
    ++merged;
    home.Erase(prev);
    AbsorbPrev(block);
  }
  if (Block* const next = block->next; next != nullptr && next->is_free) {
    Fire(Rule::kMergeNext);
    ++merged;
    home.Erase(next);
    AbsorbNext(block);
  }
  home.Insert(block);
  if (block->is_expandable) {
    home.pool->may_release = true;
    return;
  }
  if (block->is_split()) {
    stats_.inactive_split.Change(part, 1 - merged);
    stats_.inactive_split_bytes.Add(part, freed.signed_value());
  } else {
    home.pool->may_release = true;
    stats_.inactive_split.Subtract(part, merged);
    stats_.inactive_split_bytes.Subtract(part, (block->size - freed).signed_value());
  }
}

inline void CachingAllocator::AbsorbPrev(Block* block) {
  Block* const prev = block->prev;
  block->address = prev->address;
  block->size += prev->size;
  if (order_is_place()) block->order = prev->order;
  block->prev = prev->prev;
  if (block->prev != nullptr) block->prev->next = block;
  if (block->has_rest || prev->has_rest) TakeSegmentFrom(*prev, block);
  DeleteBlock(prev);
}

inline void CachingAllocator::AbsorbNext(Block* block) {
  Block* const next = block->next;
  block->size += next->size;
  block->next = next->next;
  if (block->next != nullptr) block->next->prev = block;
  DeleteBlock(next);
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

void CachingAllocator::TakeSegmentFrom(const Block& block, Block* first) {
  if (!block.is_expandable && first->prev != nullptr) return;  // the head has it
  first->Rest().segment_stack = block.rest.segment_stack;
}

[[gnu::always_inline]] inline Block* CachingAllocator::NewBlock(Address address, Bytes size,
                                                                uint64_t order,
                                                                const StreamPool& home) {
  Block* block = unused_;
  if (block != nullptr) [[likely]] {
    unused_ = block->next;
  } else {
    block = &slab_.emplace_back();
  }
  block->address = address;
  block->size = size;
  block->requested_size = Bytes(0);
  block->prev = nullptr;
  block->next = nullptr;
  block->order = order_is_place() ? order : next_order_++;
  block->id = kNoAllocation;
  block->stack = kNoStack;
  block->home = home.number;
  block->allocated = block->is_free = block->has_rest = block->is_expandable = false;
  block->mapped = true;
  block->reservation = 0;
  return block;
}

inline void CachingAllocator::DeleteBlock(Block* block) {
  if (block->has_rest) block->rest = Block::Others();
  block->size = Bytes(0);
  block->next = unused_;
  unused_ = block;
}

}  // namespace memreplay

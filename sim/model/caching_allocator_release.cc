// Decides when the caching allocator releases what to the device.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sim/model/caching_allocator.h"

namespace memreplay {

void CachingAllocator::CollectGarbage(const Params& params) {
  const double limit = static_cast<double>(limit_->value());
  const Bytes threshold(static_cast<uint64_t>(config_.garbage_collection_threshold * limit));
  if (total_ <= threshold) {
    Fire(Rule::kGarbageBelowThreshold);
    return;
  }
  const Bytes target = total_ - threshold;
  Bytes reclaimed;

  // Only the default large pool is considered. The age of a block is the number of lookups since it
  // was cached.
  BlockPool& pool = large_;
  const auto age = [&pool](const Block* block) { return pool.lookups - block->rest.gc_base; };
  uint64_t total_age = 0;
  uint64_t count = 0;
  pool.VisitFreeBlocks([&](const Block* block) {
    if (block->is_split()) return;
    total_age += age(block);
    ++count;
  });
  if (count == 0) return;
  bool freed = true;
  for (int round = 1; reclaimed < target && freed && count > 0; ++round) {
    freed = false;
    const double average = static_cast<double>(total_age) / static_cast<double>(count);
    for (Block* block : pool.FreeBlocks()) {
      if (block->is_split() || (block->is_expandable && profile_.gc_skips_expandable)) {
        continue;
      }
      const uint64_t block_age = age(block);
      if (static_cast<double>(block_age) < average) continue;
      Fire(round == 1 ? Rule::kGarbageCollected : Rule::kGarbageSecondRound);
      reclaimed += block->size;
      total_age -= block_age;
      --count;
      freed = true;
      ReleaseBlock(block, params.stack, *params.out);
    }
  }
}

bool CachingAllocator::ReleaseAvailable(const Params& params) {
  if (config_.max_split_size == kUnlimited) return false;
  const Bytes wanted = std::max(params.size, config_.max_split_size);
  const FreeSet& set = params.pool->of(params.stream).free;
  const auto skips = [this](const Block* block) {
    return block->is_expandable && profile_.release_available_skips_expandable;
  };
  Block* block = set.LowerBound(wanted);
  if (block != nullptr && !skips(block)) {
    Fire(Rule::kReleaseOneOversize);
    ReleaseBlock(block, params.stack, *params.out);
    return true;
  }
  // If no single block is large enough, the largest are released first until their sum is. Blocks
  // may have been released even if it never is.
  Bytes released;
  block = block == nullptr ? set.Last() : set.Prev(block);
  while (block != nullptr && released < wanted && block->size >= config_.max_split_size) {
    Block* const smaller = set.Prev(block);
    if (!skips(block)) {
      Fire(Rule::kReleaseSeveralOversize);
      released += block->size;
      ReleaseBlock(block, params.stack, *params.out);
    }
    block = smaller;
  }
  if (released < wanted) Fire(Rule::kReleaseAvailableShort);
  return released >= wanted;
}

absl::Status CachingAllocator::EmptyCache(const Event& request, Observer& out) {
  // In PyTorch releases in which a pool being filled acts as a capture, it does so here too.
  const bool refused = in_capture() && request.pool == 0 &&
                       profile_.empty_cache_in_pool == EmptyCacheInPool::kAsserts;
  Fire(captures_.empty() ? Rule::kEmptyCache : Rule::kEmptyCacheInPool);
  if (refused) {
    ++stats_.num_sync_all_streams;
    return absl::FailedPreconditionError(
        "empty_cache while a pool is being filled: internal assertion of this release");
  }
  ReleaseCachedBlocks(request.pool, request.text_or_stack, out);
  return std::exchange(failure_, absl::OkStatus());
}

void CachingAllocator::ReleaseCachedBlocks(uint16_t only, uint32_t stack, Observer& out) {
  if (only == 0 && !in_capture()) {
    SynchronizeAndFreeEvents(nullptr, stack, out);
    ReleaseBlocks(large_, stack, out);
    ReleaseBlocks(small_, stack, out);
  }
  for (size_t slot = freeable_.Next(0); slot < freeable_.slot_count() && failure_.ok();) {
    PrivatePool& pool = *freeable_.value_at(slot);
    if (only != 0) {
      if (pool.index != only) {
        slot = freeable_.Next(slot + 1);
        continue;
      }
      if (in_capture()) {
        ++stats_.num_sync_all_streams;
        failure_ = absl::FailedPreconditionError(
            "empty_cache of a pool while one is being filled: internal assertion of this release");
        return;
      }
      SynchronizeAndFreeEvents(&pool, stack, out);
    }
    if (pool.use_count != 0) {
      failure_ = absl::InternalError("use_count == 0: internal assertion on releasing a pool");
      return;
    }
    Fire(Rule::kPrivatePoolFlushed);
    ReleaseBlocks(pool.small, stack, out);
    ReleaseBlocks(pool.large, stack, out);
    if (pool.cuda_malloc_count == 0) {
      Fire(Rule::kPrivatePoolErased);
      pool_by_index_[pool.index] = nullptr;
      if (profile_.no_split_forgotten_at_destruction) no_split_[pool.index] = false;
      freeable_.EraseSlot(slot);
      slot = freeable_.Next(slot);
    } else {
      slot = freeable_.Next(slot + 1);
    }
  }
}

void CachingAllocator::ReleaseBlocks(BlockPool& pool, uint32_t stack, Observer& out) {
  if (!pool.may_release) return;
  std::vector<Block*> to_unmap;
  for (Block* block : pool.FreeBlocks()) {
    if (block->is_expandable) {
      to_unmap.push_back(block);
    } else if (!block->is_split()) {
      ReleaseBlock(block, stack, out);
    }
  }
  for (Block* block : to_unmap) {
    UnmapBlock(block, stack, out);
    if (!failure_.ok()) return;
    if (!block->mapped && !block->is_split()) ReleaseExpandableSegment(block);
  }
  pool.may_release = !to_unmap.empty();  // blocks without a page of their own stay
}

void CachingAllocator::ReleaseBlock(Block* block, uint32_t stack, Observer& out) {
  if (block->is_expandable || block->is_split()) {
    failure_ = absl::InternalError(
        absl::StrCat("release of a ", block->is_expandable ? "mapped" : "split", " block of ",
                     block->size.value(), " bytes: undefined in this release of PyTorch"));
    return;
  }
  StreamPool& home = HomeOf(*block);
  BlockPool& pool = *home.pool;
  const bool is_large = pool.is_large();
  if (tie_guide_ != nullptr) tie_guide_->OnRelease(*block);
  ++stats_.num_device_free;
  out.OnEvent(EventOf(EventKind::kSegmentFree, *block, block->size, stack));
  device_.FreeSegment(block->address, block->size);
  total_ -= block->size;
  if (pool.owner() != nullptr) --pool.owner()->cuda_malloc_count;
  stats_.segment.Decrease(is_large, 1);
  CountReserved(pool, -block->size.signed_value());
  if (block->size >= config_.max_split_size) stats_.oversize_segments.Decrease(1);
  home.Erase(block);
  DeleteBlock(block);
}

}  // namespace memreplay

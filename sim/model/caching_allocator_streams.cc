// Blocks used by several streams, and private pools.
#include <algorithm>
#include <utility>

#include "sim/model/caching_allocator.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {

HashedKey CachingAllocator::KeyOf(uint32_t stream) const {
  if (stream_order_ == StreamOrder::kAscending || stream >= streams_.size()) {
    return StreamKey(stream, StreamOrder::kAscending);
  }
  const uint64_t handle = streams_[stream].value();
  const bool is_of_pool = handle <= kStreamsPerPool;
  return StreamKey(is_of_pool ? handle : kStreamsPerPool + 1 + stream, StreamOrder::kPyTorchHash);
}

void CachingAllocator::RecordStream(const Event& request) {
  Block* block = Live(request.id);
  if (block == nullptr || HomeOf(*block).stream == request.stream) return;
  std::unique_ptr<StreamUses>& uses = block->Rest().uses;
  if (uses == nullptr) uses = std::make_unique<StreamUses>();
  const HashedKey key = KeyOf(request.stream);
  uses->Add(request.stream, key);
  if (in_capture() && profile_.deferred_free_drops_capture_streams) uses->MarkDuringCapture(key);
}

void CachingAllocator::InsertEvents(Block* block) {
  for (uint32_t stream : block->rest.uses->Take(stream_order_)) {
    ++block->rest.event_count;
    progressed_.push_back(stream);
    pending_.TryEmplace(KeyOf(stream)).emplace_back(device_.RecordEvent(stream), block);
  }
}

std::vector<uint32_t> CachingAllocator::PendingStreams() const {
  std::vector<uint32_t> streams;
  if (pending_.empty()) return streams;  // the empty table keeps its slots
  for (size_t slot = pending_.Next(0); slot < pending_.slot_count();
       slot = pending_.Next(slot + 1)) {
    streams.push_back(pending_.value_at(slot).front().first.stream);
  }
  if (stream_order_ == StreamOrder::kAscending) std::sort(streams.begin(), streams.end());
  return streams;
}

std::vector<uint32_t> CachingAllocator::StreamsToPoll() {
  if (!device_.CompletionIsReported()) return PendingStreams();
  std::vector<std::pair<size_t, uint32_t>> found;  // in the order of PendingStreams()
  for (const uint32_t stream : std::exchange(progressed_, {})) {
    const size_t slot = pending_.FindSlot(KeyOf(stream));
    if (slot == pending_.slot_count()) continue;
    found.emplace_back(stream_order_ == StreamOrder::kAscending ? stream : slot, stream);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  std::vector<uint32_t> streams;
  for (const auto& [place, stream] : found) streams.push_back(stream);
  return streams;
}

void CachingAllocator::HandleDeferred(uint32_t stack, Observer& out) {
  for (Block* block : std::exchange(deferred_, {})) {
    Fire(Rule::kDeferredHandled);
    if (profile_.deferred_free_drops_capture_streams && block->rest.uses->DropCaptured()) {
      Fire(Rule::kCapturedUseDropped);
    }
    InsertEvents(block);
    if (block->rest.event_count == 0) FreeBlock(block, stack, out);
  }
}

void CachingAllocator::ProcessEvents(uint32_t stack, Observer& out) {
  HandleDeferred(stack, out);
  const std::vector<uint32_t> streams = StreamsToPoll();
  rules_[static_cast<size_t>(Rule::kEventPending)] += pending_.size() - streams.size();
  // Each stream has its own head-of-line blocking.
  for (uint32_t stream : streams) {
    std::list<PendingFree>& queue = *pending_.Find(KeyOf(stream));
    while (!queue.empty()) {
      const auto [event, block] = queue.front();
      if (!device_.IsComplete(event)) {
        Fire(Rule::kEventPending);
        break;
      }
      Fire(Rule::kEventDone);
      queue.pop_front();
      if (--block->rest.event_count == 0) FreeBlock(block, stack, out);
    }
    if (queue.empty()) pending_.Erase(KeyOf(stream));
  }
}

void CachingAllocator::SynchronizeAndFreeEvents(const PrivatePool* only, uint32_t stack,
                                                Observer& out) {
  ++stats_.num_sync_all_streams;
  HandleDeferred(stack, out);
  for (uint32_t stream : PendingStreams()) {
    std::list<PendingFree>& queue = *pending_.Find(KeyOf(stream));
    std::list<PendingFree> kept;
    for (const auto& [event, block] : queue) {
      if (only != nullptr && HomeOf(*block).pool->owner() != only) {
        kept.emplace_back(event, block);
        continue;
      }
      device_.Synchronize(event);
      if (--block->rest.event_count == 0) FreeBlock(block, stack, out);
    }
    queue = std::move(kept);
    if (queue.empty()) {
      pending_.Erase(KeyOf(stream));
    } else {
      progressed_.push_back(stream);
    }
  }
}

PrivatePool* CachingAllocator::FindPool(uint16_t pool) const {
  return pool < pool_by_index_.size() ? pool_by_index_[pool] : nullptr;
}

PrivatePool& CachingAllocator::CreatePool(uint16_t pool) {
  private_pools_.push_back(std::make_unique<PrivatePool>(pool_ids_[pool], pool, stream_pools_));
  pool_by_index_[pool] = private_pools_.back().get();
  return *private_pools_.back();
}

absl::Status CachingAllocator::HoldPool(uint16_t pool, std::string_view during) {
  PrivatePool* const found = FindPool(pool);
  if (found == nullptr) {
    CreatePool(pool);
  } else if (found->use_count <= 0) {
    return absl::FailedPreconditionError(
        StrCat("use_count > 0: internal assertion on ", during, " a pool"));
  } else {
    ++found->use_count;
  }
  return absl::OkStatus();
}

absl::Status CachingAllocator::PoolBegin(uint16_t pool) {
  if (pool == 0 || pool >= pool_ids_.size()) {
    return absl::InvalidArgumentError("the default pool cannot be begun");
  }
  RETURN_IF_ERROR(HoldPool(pool, "begin of"));
  if (std::find(captures_.begin(), captures_.end(), pool) != captures_.end()) {
    return absl::FailedPreconditionError("the pool is already being filled");
  }
  captures_.push_back(pool);
  if (pool_ids_[pool].first != 0) graph_capture_ = true;
  return absl::OkStatus();
}

absl::Status CachingAllocator::PoolEnd(uint16_t pool) {
  const auto it = std::find(captures_.begin(), captures_.end(), pool);
  if (it == captures_.end()) {
    return absl::FailedPreconditionError("end of a pool that is not being filled");
  }
  if (pool_ids_[pool].first != 0) graph_capture_ = false;
  captures_.erase(it);
  return absl::OkStatus();
}

absl::Status CachingAllocator::PoolRelease(uint16_t pool) {
  PrivatePool* found = FindPool(pool);
  if (found == nullptr) {
    return absl::FailedPreconditionError("release of a pool that does not exist");
  }
  const int64_t use_count = --found->use_count;
  if (use_count < 0) {
    return absl::FailedPreconditionError("use_count >= 0: internal assertion on release of a pool");
  }
  if (use_count == 0) freeable_.TryEmplace(PoolKey(found->id), found);
  return absl::OkStatus();
}

absl::Status CachingAllocator::PoolCreate(uint16_t pool, uint64_t flags) {
  RETURN_IF_ERROR(HoldPool(pool, "creating"));
  SetFlags(pool, flags);
  return absl::OkStatus();
}

void CachingAllocator::SetFlags(uint16_t pool, uint64_t flags) {
  if ((flags & kPoolUseOnOom) != 0) use_on_oom_.TryEmplace(PoolKey(pool_ids_[pool]), pool);
  if ((flags & kPoolNoSplit) != 0) no_split_[pool] = true;
}

bool CachingAllocator::IsNoSplit(const BlockPool& pool) const {
  return profile_.no_split_pools && no_split_[pool.index()];
}

}  // namespace memreplay

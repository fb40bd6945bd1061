// PyTorch's CUDA caching allocator (backend "native"). It makes the same decisions, in the same
// order, with the same statistics and trace entries, on any Device.
//
// docs/fidelity.md is the source of every rule; it names per topic the release, the evidence, and
// the test. What differs between releases is a field of TorchProfile.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "sim/model/allocator.h"
#include "sim/model/block.h"
#include "sim/model/block_pool.h"
#include "sim/model/device.h"
#include "sim/model/rule.h"
#include "sim/model/stream_uses.h"
#include "sim/settings/allocator_config.h"
#include "sim/settings/size_rules.h"
#include "sim/settings/torch_profile.h"

namespace memreplay {

// A choice between cached blocks of equal size, instead of PyTorch's order.
class TieGuide {
 public:
  virtual ~TieGuide() = default;
  // Returns `first` or another block of its size in `set`.
  virtual Block* Choose(Block* first, const FreeSet& set) = 0;
  virtual void OnRelease(const Block& block) = 0;  // a segment is released to the device
  // Called when Restore() has numbered blocks, or segments, from 1 to `count`. The orders of what
  // belongs to number n are in [n * stride, (n + 1) * stride); those of later ones are beyond.
  virtual void OnRestore(uint64_t /*count*/, uint64_t /*stride*/) {}
};

// What a caching allocator needs to know of the trace.
struct CachingAllocatorOptions {
  StreamOrder stream_order = StreamOrder::kPyTorchHash;
  // Maps Event::stream to its handle and Event::pool to its id, as in the trace. Streams beyond the
  // table (inferred ones) never own blocks.
  std::vector<StreamHandle> streams = {StreamHandle(0)};
  std::vector<PoolId> pools = {PoolId{}};
  std::vector<uint64_t> pool_flags = {};  // of the first of these, if not set by kPoolCreate
  uint32_t allocation_count = 0;          // ids are below this; grows on demand
  TieGuide* tie_guide = nullptr;          // null: PyTorch's order
};

// What a MemoryState does not say about memory that existed before, by address.
struct RestoreHints {
  // The size last requested of the range without pages behind a mapped one, before its pages were
  // unmapped. The key is the end of the mapped range. The size becomes visible when the range has
  // pages again.
  absl::flat_hash_map<uint64_t, Bytes> unmapped_requests;
  // [free-order] Restored blocks, or segments, are numbered from 1 in the order of their addresses;
  // these ranks, indexed by that number, order them instead. If empty, addresses order them.
  std::vector<uint64_t> tie_ranks;
};

// PyTorch's CUDA caching allocator on a device.
class CachingAllocator final : public Allocator {
 public:
  // `profile` and `device` must outlive the allocator. A memory fraction set by `config` applies
  // from the start.
  CachingAllocator(const TorchProfile& profile, const AllocatorConfig& config, Device& device,
                   CachingAllocatorOptions options = {});
  ~CachingAllocator() override;

  // Takes over memory that existed before the first request: segments and the active blocks (with
  // ids) and cached blocks in them. Expandable ranges must contain only pages of their reservation;
  // neighbours without pages are not restored. An empty expandable range (total_size 0) before them
  // gives the start of their reservation. A pending free waits for its pending_stream. The
  // statistics count the memory as allocated once. Must be called before the first Apply().
  void Restore(const MemoryState& state, const RestoreHints& hints = {});

  absl::Status Apply(const Event& request, Observer& out) override { return ApplyTo(request, out); }
  // Does the same for an observer of a known final class, without virtual calls.
  template <typename Out>
  absl::Status ApplyTo(const Event& request, Out& out);
  // Prefetches what requests for these ids will read, soon and later. Frees come in any order, so
  // what they read first is often in none of the processor's caches.
  [[gnu::always_inline]] void Prefetch(AllocationId soon, AllocationId later) const {
    if (later < live_.size()) __builtin_prefetch(&live_[later]);
    if (soon < live_.size()) __builtin_prefetch(live_[soon]);
  }
  absl::Status ApplySettings(std::string_view conf) override;
  absl::Status SetMemoryFraction(double fraction) override;
  const MemoryStats& statistics() const override {
    stats_.Settle();
    return stats_;
  }
  int64_t ooms() const override { return stats_.num_ooms; }
  int64_t inactive_split_bytes() const override {
    return stats_.inactive_split_bytes.all.current();
  }
  MemoryState Segments() const override;
  void VisitFreeBlocks(absl::FunctionRef<void(const FreeBlock&)> visit) const override;
  void CheckInvariants() const override;
  Bytes BlockSizeFor(Bytes size) const override { return RoundSize(size, config_, profile_); }

  const AllocatorConfig& config() const { return config_; }
  RuleCounts rule_counts() const override { return rules_; }
  // Returns the bytes obtained from the device: segments and mapped pages of all pools.
  Bytes total_allocated_memory() const { return total_; }

 private:
  // A request that no cached block can serve.
  struct Params {
    BlockPool* pool;
    uint32_t stream;
    Bytes size;       // rounded
    bool expandable;  // this request uses expandable segments
    bool in_capture;  // a pool is being filled
    AllocationId id;
    uint32_t stack;
    Observer* out;
  };
  using PendingFree = std::pair<StreamEvent, Block*>;

  absl::Status ApplyRare(const Event& request, Observer& out);  // neither malloc nor free
  // caching_allocator.cc: malloc and free. Returns the block that serves the request, or null;
  // `result` then contains the reason, unless the request has size 0.
  Block* Malloc(const Event& request, Observer& out, absl::Status& result);
  // Selects the pool if it may not be a default one, or if frees are waiting, and does what PyTorch
  // does first in these cases. Returns null if the pool being filled was released and a flush
  // erased it.
  BlockPool* SelectPool(const Event& request, Bytes size, Observer& out, bool* in_capture);
  Block* GetFreeBlock(StreamPool& home, Bytes size, bool expandable);
  static bool IsBeforeRoom(const Block& block) {
    return block.next != nullptr && !block.next->mapped;
  }
  // Returns the cached block that expandable segments use instead of this one, or null.
  Block* GetFreeBlockAmongExpandable(Block* block, const FreeSet& set, bool expandable);
  // Serves a request for which there is no cached block. Returns null if memory runs out or
  // failure_ is set.
  Block* AllocFromDevice(Params& params);
  Block* AllocBlock(const Params& params, bool retry);
  Block* AllocByReleasing(Params& params);
  Bytes RejectionLimit() const;  // the limit of throw_on_cudamalloc_oom
  bool ShouldSplit(const Block& block, const BlockPool& pool, Bytes size, bool expandable);
  // Returns the part of a block, which is no longer cached, that serves the request; caches the
  // rest.
  Block* Take(Block* block, StreamPool& home, Bytes size, bool expandable);
  Block* UseOnOomPools(Params& params);
  // Returns null if the allocation of this id ran out of memory.
  Block* Live(AllocationId id) const { return id < live_.size() ? live_[id] : nullptr; }
  void Free(AllocationId id, Block* block);
  void FreeBlock(Block* block, uint32_t stack, Observer& out);
  void Cache(Block* block);  // the part of FreeBlock() after its event
  // Merges two neighbours, exactly one of which is still in a free set.
  void AbsorbPrev(Block* block);
  void AbsorbNext(Block* block);
  // Moves what a block stores about its segment to a block that begins at the same address.
  static void TakeSegmentFrom(const Block& block, Block* first);

  // caching_allocator_streams.cc: record_stream, events, private pools.
  void RecordStream(const Event& request);
  void InsertEvents(Block* block);
  void ProcessEvents(uint32_t stack, Observer& out);
  void SynchronizeAndFreeEvents(const PrivatePool* only, uint32_t stack, Observer& out);
  void HandleDeferred(uint32_t stack, Observer& out);
  std::vector<uint32_t> PendingStreams() const;
  // Returns those among them whose first event may have completed since the last call.
  std::vector<uint32_t> StreamsToPoll();
  HashedKey KeyOf(uint32_t stream) const;
  absl::Status PoolCreate(uint16_t pool, uint64_t flags);
  // Counts one holder more of a pool, which is made if it does not exist.
  absl::Status HoldPool(uint16_t pool, std::string_view during);
  absl::Status PoolBegin(uint16_t pool);
  absl::Status PoolEnd(uint16_t pool);
  absl::Status PoolRelease(uint16_t pool);
  PrivatePool* FindPool(uint16_t pool) const;
  void SetFlags(uint16_t pool, uint64_t flags);
  bool IsNoSplit(const BlockPool& pool) const;
  PrivatePool& CreatePool(uint16_t pool);
  // Returns whether the recording shows that a pool was being filled. It does not say so, but an
  // allocation that received memory of a pool implies it.
  bool IsRecordedInCapture(uint16_t pool) const {
    return pool != 0 && (profile_.pool_context_acts_as_capture || pool_ids_[pool].first != 0);
  }
  // Returns whether the rules of a graph capture apply.
  bool in_capture() const {
    return profile_.pool_context_acts_as_capture ? !captures_.empty() : graph_capture_;
  }

  // caching_allocator_release.cc: releasing memory to the device.
  void CollectGarbage(const Params& params);
  bool ReleaseAvailable(const Params& params);
  absl::Status EmptyCache(const Event& request, Observer& out);
  // Releases the cached blocks of the pool with index `only`, or of all pools if it is 0.
  void ReleaseCachedBlocks(uint16_t only, uint32_t stack, Observer& out);
  void ReleaseBlocks(BlockPool& pool, uint32_t stack, Observer& out);
  void ReleaseBlock(Block* block, uint32_t stack, Observer& out);

  // caching_allocator_expandable.cc
  Block* FindExpandableBlock(const Params& params);
  Block* TryAllocateExpandableBlock(const Params& params);
  // Merges the block with neighbours that, like it, are cached or without pages.
  void MergeWithNeighbours(Block* block);
  bool MapBlock(Block* block, Bytes size, const Params& params);
  void UnmapBlock(Block* block, uint32_t stack, Observer& out);
  void ReleaseExpandableSegment(Block* block);
  Bytes PageSize(const BlockPool& pool) const;
  // Returns whether Block::reservation has a number for one more.
  bool HasReservation() const {
    return !unused_reservations_.empty() || reservations_.size() < Block::kMaxReservations;
  }
  uint32_t AddReservation(const ExpandableSegment& segment);  // returns its number
  const ExpandableSegment& ReservationOf(const Block& block) const {
    return reservations_[block.reservation - 1];
  }

  StreamPool& HomeOf(const Block& block) const { return *stream_pools_[block.home]; }
  // Takes a block from a slab with stable addresses and reused objects. `order` is the release's
  // order, unless the release numbers blocks.
  Block* NewBlock(Address address, Bytes size, uint64_t order, const StreamPool& home);
  void DeleteBlock(Block* block);
  // [free-order] Returns whether Block::order is the address, or the position that the address
  // would have if segments lay in the order of their age; otherwise it is a number that a block
  // gets when it is created.
  bool order_is_place() const { return profile_.free_tie != FreeTie::kBlockAge; }
  // Returns the order of the first block of a new segment, or reservation, of `size` bytes.
  uint64_t OrderOfSegment(Address address, Bytes size) {
    if (profile_.free_tie != FreeTie::kSegmentAge) return address.value();
    return std::exchange(next_order_, next_order_ + size.value());
  }

  void NoteSettings() {
    const auto& divisions = config_.roundup_power2_divisions;
    rounds_by_division_ = std::any_of(divisions.begin(), divisions.end(),
                                      [](uint64_t number) { return number != 0; });
  }
  bool garbage_collection_on() const {
    return limit_.has_value() && config_.garbage_collection_threshold > 0;
  }
  // Counts bytes that `pool` obtained from the device or released (negative).
  void CountReserved(const BlockPool& pool, int64_t change);
  void ResetPeak() {
    stats_.Settle();
    stats_.ResetPeak();
  }
  void Fire(Rule rule) { ++rules_[static_cast<size_t>(rule)]; }
  [[gnu::always_inline]] Event EventOf(EventKind kind, const Block& block, Bytes size,
                                       uint32_t stack) const {
    const StreamPool& home = HomeOf(block);
    Event event;
    event.kind = kind;
    event.pool = home.pool->index();
    event.id = block.id;
    event.address = block.address;
    event.size = size;
    event.block_size = block.size;
    event.stream = home.stream;
    event.text_or_stack = stack;
    return event;
  }

  const TorchProfile& profile_;
  AllocatorConfig config_;
  bool rounds_by_division_ = false;  // roundup_power2_divisions is set
  Device& device_;
  StreamOrder stream_order_;
  std::vector<StreamHandle> streams_;
  std::vector<PoolId> pool_ids_;

  std::vector<StreamPool*> stream_pools_;  // of all pools, by Block::home
  BlockPool small_{false, nullptr, 0, stream_pools_};
  BlockPool large_{true, nullptr, 0, stream_pools_};
  std::vector<Block*> live_;  // by AllocationId; null: not live
  std::deque<Block> slab_;
  Block* unused_ = nullptr;                      // first of those not in use, linked by `next`
  std::vector<ExpandableSegment> reservations_;  // by Block::reservation, from 1
  std::vector<uint32_t> unused_reservations_;    // numbers

  std::vector<std::unique_ptr<PrivatePool>> private_pools_;  // including dead ones
  std::vector<PrivatePool*> pool_by_index_;                  // live ones; null: none
  FlatHashOrder<PrivatePool*> freeable_;
  FlatHashOrder<uint16_t> use_on_oom_;  // pool indexes
  std::vector<bool> no_split_;          // by pool index
  std::vector<uint16_t> captures_;      // pools being filled, oldest first; a flush may erase one
  bool graph_capture_ = false;          // a graph is captured; the first end of one resets it
  std::vector<Block*> deferred_;        // frees deferred while a pool is being filled
  FlatHashOrder<std::list<PendingFree>> pending_;  // by stream
  std::vector<uint32_t> progressed_;               // streams; of StreamsToPoll()

  TieGuide* tie_guide_ = nullptr;
  uint64_t next_order_ = 1;  // of the next segment or block, if that orders equal blocks
  Bytes total_;
  std::optional<Bytes> limit_;
  mutable MemoryStats stats_;
  RuleCounts rules_ = {};
  absl::Status failure_;  // an assertion of PyTorch that failed on the way
};

template <typename Out>
[[gnu::always_inline]] inline absl::Status CachingAllocator::ApplyTo(const Event& request,
                                                                     Out& out) {
  absl::Status result;
  if (request.kind == EventKind::kAlloc) {
    if (const Block* block = Malloc(request, out, result); block != nullptr) {
      out.OnEvent(EventOf(EventKind::kAlloc, *block, request.size, request.text_or_stack));
    }
  } else if (request.kind != EventKind::kFree) {
    result = ApplyRare(request, out);
  } else if (Block* block = Live(request.id); block != nullptr) {
    Event event = EventOf(EventKind::kFree, *block, block->requested_size, request.text_or_stack);
    out.OnEvent(event);
    if (!block->has_stream_uses()) {
      event.kind = EventKind::kFreeCompleted;
      out.OnEvent(event);
    }
    Free(request.id, block);
  }
  return result;
}

}  // namespace memreplay

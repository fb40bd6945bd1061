// torch.cuda.memory_stats(): the counters of PyTorch's allocator, under PyTorch's names.
// docs/fidelity.md says per release which exist.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/settings/torch_profile.h"
#include "trace/value/units.h"

namespace memreplay {

// One counter with its history. It is in bytes for *_bytes and otherwise a number of objects.
struct Stat {
  int64_t peak = 0;
  int64_t below_peak = 0;  // needs fewer instructions to update than the current value
  int64_t allocated = 0;   // sum of all increases
  int64_t base = 0;        // current() when that sum began

  int64_t current() const { return peak - below_peak; }
  int64_t freed() const { return allocated - (current() - base); }  // sum of all decreases
  void ResetPeak() {
    peak = current();
    below_peak = 0;
  }
  void ResetAccumulated() {
    allocated = 0;
    base = current();
  }
  [[gnu::always_inline]] void Increase(int64_t amount) {
    allocated += amount;
    Rise(amount);
  }
  [[gnu::always_inline]] void Decrease(int64_t amount) { below_peak += amount; }
  [[gnu::always_inline]] void Rise(int64_t amount) {  // an increase that `allocated` leaves out
    below_peak -= amount;
    if (below_peak < 0) [[unlikely]] {
      peak -= below_peak;
      below_peak = 0;
    }
  }
  friend bool operator==(const Stat&, const Stat&) = default;
};

// A counter kept for all blocks and, split, for the small and the large pools.
struct StatArray {
  Stat all;
  Stat small_pool;
  Stat large_pool;

  // Either &StatArray::small_pool or &StatArray::large_pool.
  using Part = Stat StatArray::*;
  static constexpr Part PartOf(bool is_large) {
    return is_large ? &StatArray::large_pool : &StatArray::small_pool;
  }

  void Increase(bool is_large, int64_t amount) {
    all.Increase(amount);
    (this->*PartOf(is_large)).Increase(amount);
  }
  void Decrease(bool is_large, int64_t amount) {
    all.Decrease(amount);
    (this->*PartOf(is_large)).Decrease(amount);
  }

  // Adds to a counter that every request changes; Settle() computes the `allocated` of `all`.
  [[gnu::always_inline]] void Add(Part pool, int64_t amount) {
    (this->*pool).Increase(amount);
    all.Rise(amount);
  }
  [[gnu::always_inline]] void Subtract(Part pool, int64_t amount) {
    (this->*pool).Decrease(amount);
    all.Decrease(amount);
  }
  // Increases or, if negative, decreases the counter without a branch.
  [[gnu::always_inline]] void Change(Part pool, int64_t change) {
    (this->*pool).allocated += std::max<int64_t>(change, 0);
    (this->*pool).Rise(change);
    all.Rise(change);
  }
  void Settle() {
    all.allocated = small_pool.allocated + large_pool.allocated;
    all.base = small_pool.base + large_pool.base;
  }
  friend bool operator==(const StatArray&, const StatArray&) = default;
};

// The figures of torch.cuda.memory_stats().
struct MemoryStats {
  StatArray allocation;
  StatArray segment;
  StatArray active;
  StatArray inactive_split;
  StatArray allocated_bytes;
  StatArray reserved_bytes;
  StatArray active_bytes;
  StatArray inactive_split_bytes;
  StatArray requested_bytes;
  // Counts private pools that ever held memory, including those that no longer exist (2.13 and
  // later).
  std::map<PoolId, StatArray> reserved_bytes_by_private_pools;
  Stat oversize_allocations;
  Stat oversize_segments;
  int64_t num_alloc_retries = 0;
  int64_t num_ooms = 0;
  int64_t num_sync_all_streams = 0;
  int64_t num_device_alloc = 0;
  int64_t num_device_free = 0;
  int64_t num_oom_rejections = 0;  // refused by throw_on_cudamalloc_oom
  int64_t max_split_size = -1;     // at construction; -1 is unlimited

  // Counts what every allocation and free counts. The counters are complete after Settle().
  [[gnu::always_inline]] void CountAllocation(StatArray::Part part, int64_t size,
                                              int64_t requested) {
    allocation.Add(part, 1);
    allocated_bytes.Add(part, size);
    requested_bytes.Add(part, requested);
    if (active_is_apart) [[unlikely]] {
      active.Add(part, 1);
      active_bytes.Add(part, size);
    }
  }
  [[gnu::always_inline]] void CountFree(StatArray::Part part, int64_t size) {
    allocation.Subtract(part, 1);
    allocated_bytes.Subtract(part, size);
  }
  [[gnu::always_inline]] void CountFreeCompleted(StatArray::Part part, int64_t size,
                                                 int64_t requested) {
    requested_bytes.Subtract(part, requested);
    if (active_is_apart) [[unlikely]] {
      active.Subtract(part, 1);
      active_bytes.Subtract(part, size);
    }
  }
  // Must be called before the first free that waits; until then active and allocated memory are the
  // same.
  void KeepActiveApart();
  void Settle();

  void ResetPeak();
  void ResetAccumulated();
  friend bool operator==(const MemoryStats&, const MemoryStats&) = default;

  bool active_is_apart = false;
};

// Returns flat names ("allocated_bytes.all.peak") and values in sorted order, as that release's
// torch.cuda.memory_stats() prints them.
std::vector<std::pair<std::string, int64_t>> FlatStatistics(const MemoryStats& stats,
                                                            const TorchProfile& profile);

}  // namespace memreplay

#include "sim/model/memory_stats.h"

#include <string_view>

namespace memreplay {
namespace {

using FlatList = std::vector<std::pair<std::string, int64_t>>;

void Append(std::string_view name, const Stat& stat, FlatList* out) {
  const std::string prefix = std::string(name) + ".";
  out->emplace_back(prefix + "current", stat.current());
  out->emplace_back(prefix + "peak", stat.peak);
  out->emplace_back(prefix + "allocated", stat.allocated);
  out->emplace_back(prefix + "freed", stat.freed());
}

struct NamedArray {
  std::string_view name;
  StatArray MemoryStats::*array;
};
constexpr NamedArray kArrays[] = {
    {"allocation", &MemoryStats::allocation},
    {"segment", &MemoryStats::segment},
    {"active", &MemoryStats::active},
    {"inactive_split", &MemoryStats::inactive_split},
    {"allocated_bytes", &MemoryStats::allocated_bytes},
    {"reserved_bytes", &MemoryStats::reserved_bytes},
    {"active_bytes", &MemoryStats::active_bytes},
    {"inactive_split_bytes", &MemoryStats::inactive_split_bytes},
    {"requested_bytes", &MemoryStats::requested_bytes},
};

}  // namespace

void MemoryStats::Settle() {
  for (StatArray* array :
       {&allocation, &allocated_bytes, &requested_bytes, &inactive_split, &inactive_split_bytes}) {
    array->Settle();
  }
  if (active_is_apart) {
    active.Settle();
    active_bytes.Settle();
  } else {
    active = allocation;
    active_bytes = allocated_bytes;
  }
}

void MemoryStats::KeepActiveApart() {
  Settle();
  active_is_apart = true;
}

void MemoryStats::ResetPeak() {
  for (const NamedArray& named : kArrays) {
    StatArray& array = this->*named.array;
    for (Stat* stat : {&array.all, &array.small_pool, &array.large_pool}) {
      stat->ResetPeak();
    }
  }
  for (auto& [pool, array] : reserved_bytes_by_private_pools) {
    for (Stat* stat : {&array.all, &array.small_pool, &array.large_pool}) {
      stat->ResetPeak();
    }
  }
  oversize_allocations.ResetPeak();
  oversize_segments.ResetPeak();
}

void MemoryStats::ResetAccumulated() {
  for (const NamedArray& named : kArrays) {
    StatArray& array = this->*named.array;
    for (Stat* stat : {&array.all, &array.small_pool, &array.large_pool}) {
      stat->ResetAccumulated();
    }
  }
  for (auto& [pool, array] : reserved_bytes_by_private_pools) {
    for (Stat* stat : {&array.all, &array.small_pool, &array.large_pool}) {
      stat->ResetAccumulated();
    }
  }
  for (Stat* stat : {&oversize_allocations, &oversize_segments}) {
    stat->ResetAccumulated();
  }
  num_alloc_retries = num_ooms = num_sync_all_streams = 0;
  num_device_alloc = num_device_free = num_oom_rejections = 0;
}

FlatList FlatStatistics(const MemoryStats& stats, const TorchProfile& profile) {
  FlatList out;
  for (const NamedArray& named : kArrays) {
    const StatArray& array = stats.*named.array;
    const std::string prefix = std::string(named.name) + ".";
    Append(prefix + "all", array.all, &out);
    Append(prefix + "small_pool", array.small_pool, &out);
    Append(prefix + "large_pool", array.large_pool, &out);
  }
  if (profile.reserved_bytes_by_private_pools) {
    for (const auto& [pool, array] : stats.reserved_bytes_by_private_pools) {
      const std::string prefix = "reserved_bytes_by_private_pools." + std::to_string(pool.first) +
                                 "_" + std::to_string(pool.second) + ".";
      Append(prefix + "all", array.all, &out);
      Append(prefix + "small_pool", array.small_pool, &out);
      Append(prefix + "large_pool", array.large_pool, &out);
    }
  }
  Append("oversize_allocations", stats.oversize_allocations, &out);
  Append("oversize_segments", stats.oversize_segments, &out);
  out.emplace_back("num_alloc_retries", stats.num_alloc_retries);
  out.emplace_back("num_ooms", stats.num_ooms);
  out.emplace_back("max_split_size", stats.max_split_size);
  if (profile.counts_sync_all_streams) {
    out.emplace_back("num_sync_all_streams", stats.num_sync_all_streams);
  }
  if (profile.counts_device_calls) {
    out.emplace_back("num_device_alloc", stats.num_device_alloc);
    out.emplace_back("num_device_free", stats.num_device_free);
  }
  if (profile.counts_oom_rejections) {
    out.emplace_back("num_oom_rejections", stats.num_oom_rejections);
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace memreplay

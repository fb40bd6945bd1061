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

void AppendArray(const std::string& name, const StatArray& array, FlatList* out) {
  Append(name + ".all", array.all, out);
  Append(name + ".small_pool", array.small_pool, out);
  Append(name + ".large_pool", array.large_pool, out);
}

template <typename Change>
void ForEachStat(MemoryStats& stats, const Change& change) {
  const auto change_all = [&](StatArray& array) {
    for (Stat* stat : {&array.all, &array.small_pool, &array.large_pool}) change(*stat);
  };
  for (const NamedArray& named : kArrays) change_all(stats.*named.array);
  for (auto& [pool, array] : stats.reserved_bytes_by_private_pools) change_all(array);
  change(stats.oversize_allocations);
  change(stats.oversize_segments);
}

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
  ForEachStat(*this, [](Stat& stat) { stat.ResetPeak(); });
}

void MemoryStats::ResetAccumulated() {
  ForEachStat(*this, [](Stat& stat) { stat.ResetAccumulated(); });
  num_alloc_retries = num_ooms = num_sync_all_streams = 0;
  num_device_alloc = num_device_free = num_oom_rejections = 0;
}

FlatList FlatStatistics(const MemoryStats& stats, const TorchProfile& profile) {
  FlatList out;
  for (const NamedArray& named : kArrays) {
    AppendArray(std::string(named.name), stats.*named.array, &out);
  }
  if (profile.reserved_bytes_by_private_pools) {
    for (const auto& [pool, array] : stats.reserved_bytes_by_private_pools) {
      AppendArray("reserved_bytes_by_private_pools." + std::to_string(pool.first) + "_" +
                      std::to_string(pool.second),
                  array, &out);
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

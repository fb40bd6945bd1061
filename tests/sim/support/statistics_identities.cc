#include "tests/sim/support/statistics_identities.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace memreplay {

std::string BrokenStatisticsIdentity(const MemoryState& segments, const MemoryStats& stats) {
  MemoryStats sums;  // `current` values only
  for (const SegmentInfo& segment : segments) {
    const bool large = segment.is_large;
    sums.reserved_bytes.Increase(large, segment.total_size.signed_value());
    if (!segment.is_expandable) sums.segment.Increase(large, 1);
    Bytes total;
    Address next = segment.address;
    for (const BlockInfo& block : segment.blocks) {
      const int64_t size = block.size.signed_value();
      if (block.address != next) return absl::StrCat("gap before block ", block.address.value());
      next = block.address + block.size;
      total += block.size;
      if (block.state == BlockState::kInactive) {
        if (!segment.is_expandable && segment.blocks.size() > 1) {
          sums.inactive_split.Increase(large, 1);
          sums.inactive_split_bytes.Increase(large, size);
        }
        continue;
      }
      if (block.state == BlockState::kAllocated) {
        sums.allocation.Increase(large, 1);
        sums.allocated_bytes.Increase(large, size);
      }
      sums.active.Increase(large, 1);
      sums.active_bytes.Increase(large, size);
      sums.requested_bytes.Increase(large, block.requested_size.signed_value());
    }
    if (total != segment.total_size) {
      return absl::StrCat("blocks of segment ", segment.address.value(), " add up to ",
                          total.value(), ", not ", segment.total_size.value());
    }
  }
  const std::pair<const char*, StatArray MemoryStats::*> arrays[] = {
      {"allocation", &MemoryStats::allocation},
      {"allocated_bytes", &MemoryStats::allocated_bytes},
      {"active", &MemoryStats::active},
      {"active_bytes", &MemoryStats::active_bytes},
      {"requested_bytes", &MemoryStats::requested_bytes},
      {"inactive_split", &MemoryStats::inactive_split},
      {"inactive_split_bytes", &MemoryStats::inactive_split_bytes},
      {"segment", &MemoryStats::segment},
      {"reserved_bytes", &MemoryStats::reserved_bytes},
  };
  for (const auto& [name, array] : arrays) {
    const std::pair<const char*, Stat StatArray::*> parts[] = {
        {"all", &StatArray::all},
        {"small_pool", &StatArray::small_pool},
        {"large_pool", &StatArray::large_pool},
    };
    for (const auto& [part, stat] : parts) {
      const Stat& said = stats.*array.*stat;
      const Stat& sum = sums.*array.*stat;
      const std::string full = absl::StrCat(name, ".", part);
      if (said.current() != sum.current()) {
        return absl::StrCat(full, ".current is ", said.current(), ", the segments say ",
                            sum.current());
      }
      if (said.current() != said.allocated - said.freed()) {
        return absl::StrCat(full, ": current ", said.current(), " is not allocated ",
                            said.allocated, " less freed ", said.freed());
      }
      if (said.peak < said.current()) {
        return absl::StrCat(full, ": peak ", said.peak, " below current ", said.current());
      }
    }
    if ((stats.*array).all.current() !=
        (stats.*array).small_pool.current() + (stats.*array).large_pool.current()) {
      return absl::StrCat(name, ": the two pools do not add up to all");
    }
  }
  return "";
}

}  // namespace memreplay

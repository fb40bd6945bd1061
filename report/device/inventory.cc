#include "report/device/inventory.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "report/device/enums.h"
#include "report/words/text.h"
#include "trace/value/bounded.h"
#include "trace/value/event.h"

namespace memreplay {
namespace {

constexpr size_t kKinds = static_cast<size_t>(EventKind::kSnapshot) + 1;

// A figure over time. It is signed, because a file that contradicts itself can go below zero.
struct Level {
  int64_t now = 0;
  int64_t peak = 0;
  int64_t least = 0;

  [[gnu::always_inline]] void Add(int64_t change) {
    now = Bounded(now + Bounded(change));
    peak = std::max(peak, now);
    least = std::min(least, now);
  }
};

// Running sums relative to an unknown start, which is taken as 0.
struct Walk {
  std::array<int64_t, kKinds> counts = {};
  int64_t refused = 0;  // bytes of the last request that ran out
  Level reserved;
  Level requested;    // of active blocks
  Level allocations;  // active ones
  struct StreamUse {
    int64_t allocations = 0;
    int64_t bytes = 0;
  };
  std::vector<StreamUse> streams;  // by Event::stream
  // Among the moments after an alloc or an oom with the most reserved memory, the one with the most
  // requested memory.
  struct Moment {
    int64_t event = -1;  // -1: before the first
    int64_t reserved = 0;
    int64_t requested = 0;
  };
  Moment at_peak;
};

// The sizes of allocations in a written schedule, whose frees name a handle and not a size.
class ProgramSizes {
 public:
  void Alloc(const Event& event) { sizes_[event.address.value()] = event.size.signed_value(); }
  // Returns -1 if the handle is not live.
  int64_t Free(const Event& event) {
    const auto found = sizes_.find(event.address.value());
    if (found == sizes_.end()) return -1;
    const int64_t size = found->second;
    sizes_.erase(found);
    return size;
  }

 private:
  absl::flat_hash_map<uint64_t, int64_t> sizes_;
};

// `events` are those of the device.
template <typename Events>
Walk WalkEvents(const Trace& trace, const DeviceTrace& device, const Events& events) {
  Walk walk;
  const EventKind end_of_life = EndOfLife(trace, device);
  ProgramSizes program;
  int64_t at = -1;
  for (const Event& event : events) {
    ++at;
    ++walk.counts[static_cast<size_t>(event.kind)];
    if (event.kind == EventKind::kOom) walk.refused = event.size.signed_value();
    const int64_t size = event.size.signed_value();
    if (event.kind == EventKind::kAlloc) {
      if (event.stream >= walk.streams.size()) walk.streams.resize(event.stream + 1);
      ++walk.streams[event.stream].allocations;
      int64_t& bytes = walk.streams[event.stream].bytes;
      bytes = BoundedSum(bytes, size);
      if (trace.is_program) program.Alloc(event);
      walk.requested.Add(size);
      walk.allocations.Add(1);
    } else if (event.kind == end_of_life) {
      // The recording begins after a free whose request is the last lost event.
      if (at == 0 && event.kind == EventKind::kFreeCompleted) continue;
      const int64_t freed = trace.is_program ? program.Free(event) : size;
      if (freed >= 0) {
        walk.requested.Add(-Bounded(freed));
        walk.allocations.Add(-1);
      }
    } else if (event.kind == EventKind::kSegmentAlloc || event.kind == EventKind::kSegmentMap) {
      walk.reserved.Add(size);
    } else if (event.kind == EventKind::kSegmentFree || event.kind == EventKind::kSegmentUnmap) {
      walk.reserved.Add(-Bounded(size));
    }
    if (event.kind == EventKind::kAlloc || event.kind == EventKind::kOom) {
      const Walk::Moment now = {at, walk.reserved.now, walk.requested.now};
      if (std::tie(now.reserved, now.requested) >
          std::tie(walk.at_peak.reserved, walk.at_peak.requested)) {
        walk.at_peak = now;
      }
    }
  }
  return walk;
}

struct StateSums {
  int64_t reserved = 0;
  int64_t active = 0;
  int64_t allocated = 0;
  int64_t requested = 0;  // of active blocks
  int64_t active_blocks = 0;
  int64_t blocks = 0;
};

StateSums SumState(const MemoryState& state) {
  StateSums sums;
  for (const SegmentInfo& segment : state) {
    sums.reserved = BoundedSum(sums.reserved, segment.total_size.signed_value());
    sums.blocks += std::ssize(segment.blocks);
    for (const BlockInfo& block : segment.blocks) {
      if (block.state == BlockState::kInactive) continue;
      sums.active = BoundedSum(sums.active, block.size.signed_value());
      sums.requested = BoundedSum(sums.requested, block.requested_size.signed_value());
      ++sums.active_blocks;
      if (block.state == BlockState::kAllocated) {
        sums.allocated = BoundedSum(sums.allocated, block.size.signed_value());
      }
    }
  }
  return sums;
}

// The level of each figure when recording began.
struct Start {
  int64_t reserved = 0;
  int64_t requested = 0;
  int64_t allocations = 0;
};

Start FindStart(const Trace& trace, const DeviceTrace& device, const Walk& walk) {
  if (trace.is_program) return {};
  Start start{-walk.reserved.least, -walk.requested.least, -walk.allocations.least};
  if (device.has_final_state) {
    const StateSums final_sums = SumState(device.final_state);
    start.reserved = std::max(start.reserved, BoundedSum(final_sums.reserved, -walk.reserved.now));
    start.requested =
        std::max(start.requested, BoundedSum(final_sums.requested, -walk.requested.now));
    start.allocations =
        std::max(start.allocations, final_sums.active_blocks - walk.allocations.now);
  }
  return start;
}

void AddStreams(const Trace& trace, const DeviceTrace& device, const Walk& walk,
                proto::Inventory* inventory) {
  // Ascending by handle.
  std::map<uint64_t, proto::Inventory::StreamUse> uses;
  for (size_t index = 0; index < walk.streams.size(); ++index) {
    if (walk.streams[index].allocations == 0) continue;
    auto& use = uses[index < trace.streams.size() ? trace.streams[index].value() : index];
    use.set_allocs(use.allocs() + walk.streams[index].allocations);
    use.set_requested_bytes(BoundedSum(use.requested_bytes(), walk.streams[index].bytes));
  }
  for (const SegmentInfo& segment : device.final_state) {
    auto& use = uses[segment.stream.value()];
    use.set_segments(use.segments() + 1);
    use.set_reserved_bytes(BoundedSum(use.reserved_bytes(), segment.total_size.signed_value()));
  }
  for (auto& [handle, use] : uses) {
    use.set_stream(static_cast<int64_t>(handle));
    *inventory->add_streams() = std::move(use);
  }
}

void AddPools(const DeviceTrace& device, proto::Inventory* inventory) {
  std::map<PoolId, proto::Inventory::PoolUse> uses;
  for (const SegmentInfo& segment : device.final_state) {
    auto& use = uses[segment.pool_id];
    use.set_segments(use.segments() + 1);
    use.set_reserved_bytes(BoundedSum(use.reserved_bytes(), segment.total_size.signed_value()));
    for (const BlockInfo& block : segment.blocks) {
      if (block.state == BlockState::kInactive) continue;
      use.set_active_bytes(BoundedSum(use.active_bytes(), block.size.signed_value()));
    }
  }
  for (auto& [id, use] : uses) {
    SetPool(id, &use);
    *inventory->add_pools() = std::move(use);
  }
}

}  // namespace

DeviceContents DescribeContents(const Trace& trace, size_t device_index) {
  const DeviceTrace& device = trace.devices[device_index];
  const Walk walk = device.events.source() == nullptr
                        ? WalkEvents(trace, device, device.events.kept())
                        : WalkEvents(trace, device, device.events);
  const Start start = FindStart(trace, device, walk);

  DeviceContents contents;
  proto::Inventory& inventory = contents.inventory;
  for (size_t kind = 0; kind < kKinds; ++kind) {
    if (walk.counts[kind] == 0) continue;
    (*inventory.mutable_actions())[std::string(EventKindName(static_cast<EventKind>(kind)))] =
        walk.counts[kind];
  }
  inventory.set_is_program(trace.is_program);
  inventory.set_is_cold(start.allocations == 0 && start.reserved == 0);
  inventory.set_start_allocations(start.allocations);
  inventory.set_start_requested_bytes(start.requested);
  inventory.set_start_reserved_bytes(start.reserved);
  AddStreams(trace, device, walk, &inventory);
  AddPools(device, &inventory);
  inventory.set_stacks(std::ssize(trace.stacks) - 1);  // not the empty one
  inventory.set_frames(static_cast<int64_t>(trace.stacks.frame_count()));
  inventory.set_annotations(absl::c_count_if(
      trace.annotations, [&](const Annotation& a) { return a.device == device.device; }));
  if (!device.time_us.empty()) {
    inventory.set_first_time_us(device.time_us.front());
    inventory.set_last_time_us(device.time_us.back());
  }
  inventory.set_has_final_state(device.has_final_state);
  if (device.has_final_state) {
    const StateSums sums = SumState(device.final_state);
    inventory.set_final_segments(std::ssize(device.final_state));
    inventory.set_final_blocks(sums.blocks);
    inventory.set_final_reserved_bytes(sums.reserved);
    inventory.set_final_active_bytes(sums.active);
    inventory.set_final_allocated_bytes(sums.allocated);
  }
  if (trace.settings.has_value()) inventory.set_recorded_conf(CleanText(trace.settings->conf));

  proto::RecordedPeaks& peaks = contents.peaks;
  peaks.set_peak_reserved_bytes(start.reserved + walk.reserved.peak);
  peaks.set_peak_requested_bytes(start.requested + walk.requested.peak);
  peaks.set_peak_reserved_event(walk.at_peak.event);
  peaks.set_ooms(walk.counts[static_cast<size_t>(EventKind::kOom)]);
  peaks.set_refused_bytes(walk.refused);
  return contents;
}

proto::Fragmentation FragmentationOf(const MemoryState& state) {
  proto::Fragmentation result;
  using Key = std::tuple<PoolId, bool, StreamHandle>;
  std::map<Key, proto::Fragmentation::LargestFree> free;
  int64_t internal = 0;
  int64_t inactive_split = 0;
  int64_t cached = 0;
  for (const SegmentInfo& segment : state) {
    for (const BlockInfo& block : segment.blocks) {
      const int64_t size = block.size.signed_value();
      if (block.state != BlockState::kInactive) {
        internal =
            BoundedSum(internal, Bounded(size) - Bounded(block.requested_size.signed_value()));
        continue;
      }
      cached = BoundedSum(cached, size);
      if (segment.blocks.size() > 1 && !segment.is_expandable) {
        inactive_split = BoundedSum(inactive_split, size);
      }
      auto& list = free[{segment.pool_id, segment.is_large, segment.stream}];
      list.set_bytes(std::max(list.bytes(), size));
      list.set_free_bytes(BoundedSum(list.free_bytes(), size));
      list.set_free_blocks(list.free_blocks() + 1);
    }
  }
  result.set_internal_bytes(internal);
  result.set_inactive_split_bytes(inactive_split);
  result.set_reserved_minus_active_bytes(cached);
  for (auto& [key, list] : free) {
    const auto& [pool, is_large, stream] = key;
    SetPlace(pool, is_large, stream, &list);
    *result.add_largest_free() = std::move(list);
  }
  return result;
}

void AddSegments(const MemoryState& state,
                 google::protobuf::RepeatedPtrField<proto::Segment>* segments) {
  for (const SegmentInfo& from : state) {
    proto::Segment& to = *segments->Add();
    int64_t allocated = 0;
    int64_t active = 0;
    int64_t requested = 0;
    for (const BlockInfo& block : from.blocks) {
      proto::Block& b = *to.add_blocks();
      b.set_address(static_cast<int64_t>(block.address.value()));
      b.set_size(block.size.signed_value());
      b.set_requested_size(block.requested_size.signed_value());
      b.set_state(StateOf(block.state));
      if (block.state == BlockState::kInactive) continue;
      active = BoundedSum(active, block.size.signed_value());
      requested = BoundedSum(requested, block.requested_size.signed_value());
      if (block.state == BlockState::kAllocated) {
        allocated = BoundedSum(allocated, block.size.signed_value());
      }
    }
    to.set_address(static_cast<int64_t>(from.address.value()));
    to.set_total_size(from.total_size.signed_value());
    to.set_allocated_size(allocated);
    to.set_active_size(active);
    to.set_requested_size(requested);
    SetPlace(from.pool_id, from.is_large, from.stream, &to);
    to.set_is_expandable(from.is_expandable);
  }
}

}  // namespace memreplay

#include "sim/category/category_table.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace memreplay {
namespace {

class Walker {
 public:
  Walker(const Schedule& schedule, const Meanings& meanings, std::optional<uint64_t> until)
      : schedule_(schedule),
        meanings_(meanings),
        until_(until),
        sizes_(schedule.allocation_count(), kFreed),
        stacks_(schedule.allocation_count()) {
    for (const StartAllocation& start : schedule.start_allocations()) {
      stacks_[start.id] = start.stack;
    }
    ReadTree();
  }

  CategoryTable Walk() {
    for (const StartAllocation& start : schedule_.start_allocations()) {
      if (start.state == BlockState::kAllocated) Take(start.id, start.requested_size);
    }
    if (schedule_.is_program()) {
      WalkEvents(schedule_.requests());
    } else {
      WalkEvents(schedule_.recorded());
    }
    Finish();
    return std::move(table_);
  }

 private:
  static constexpr uint32_t kNone = 0xffffffff;
  static constexpr Bytes kFreed = Bytes(~uint64_t{0});
  struct Node {
    std::string path;
    uint32_t parent = kNone;
    Bytes live, most, at_peak;
    BytesByCategory bytes = {};
  };

  // Makes nodes for each module and its parents: "a.b.c" lies in "a.b" and "a".
  void ReadTree() {
    std::map<std::string, uint32_t, std::less<>> nodes;
    for (const std::string& path : meanings_.modules) {
      uint32_t parent = kNone;
      for (size_t end = path.find('.');; end = path.find('.', end + 1)) {
        const std::string_view prefix = std::string_view(path).substr(0, end);
        const auto found = nodes.find(prefix);
        if (found != nodes.end()) {
          parent = found->second;
        } else {
          const auto number = static_cast<uint32_t>(nodes_.size());
          nodes_.push_back({std::string(prefix), parent, {}, {}, {}, {}});
          nodes.emplace(prefix, number);
          parent = number;
        }
        if (end == path.npos) break;
      }
      node_of_module_.push_back(parent);
    }
  }

  template <typename Change>
  void ForEachNode(AllocationId id, Change change) {
    for (uint32_t node = node_of_module_[meanings_.of[id].module]; node != kNone;
         node = nodes_[node].parent) {
      change(nodes_[node]);
    }
  }

  void Take(AllocationId id, Bytes size) {
    if (id >= sizes_.size() || sizes_[id] != kFreed) return;
    sizes_[id] = size;
    now_.live += size;
    now_.bytes[static_cast<size_t>(meanings_.of[id].category)] += size;
    ForEachNode(id, [&](Node& node) {
      node.live += size;
      node.most = std::max(node.most, node.live);
    });
  }

  void Free(AllocationId id) {
    if (id >= sizes_.size() || sizes_[id] == kFreed) return;
    const Bytes size = std::exchange(sizes_[id], kFreed);
    now_.live -= size;
    now_.bytes[static_cast<size_t>(meanings_.of[id].category)] -= size;
    ForEachNode(id, [&](Node& node) { node.live -= size; });
  }

  template <typename View>
  void WalkEvents(const View& events) {
    std::array<CategoryPeak, kPhases> peaks;
    size_t span = 0;
    uint64_t i = 0;
    const auto phase = [&]() -> const PhaseSpan& {
      while (span + 1 < meanings_.phases.size() && meanings_.phases[span + 1].begin <= i) ++span;
      return meanings_.phases[span];
    };
    const auto take_moment = [&](CategoryPeak* peak) {
      *peak = now_;
      peak->event = i;
      peak->phase = phase().phase;
      peak->step = phase().step;
      peak->is_in_vain = phase().is_in_vain;
    };
    const auto note = [&] {
      CategoryPeak& peak = peaks[static_cast<size_t>(phase().phase)];
      if (now_.live > peak.live) take_moment(&peak);
    };
    note();
    for (const Event& event : events) {
      if (i == until_) break;
      if (event.kind == EventKind::kAlloc) {
        Take(event.id, event.size);
        note();
      } else if (event.kind == EventKind::kFree || event.kind == EventKind::kFreeCompleted) {
        Free(event.id);
      }
      ++i;
    }
    for (const CategoryPeak& peak : peaks) {
      if (peak.live == Bytes()) continue;
      table_.phases.push_back(peak);
      if (peak.live > table_.peak.live) table_.peak = peak;
    }
    if (until_) take_moment(&table_.peak);
  }

  void Finish() {
    // The second pass, up to the peak, finds what is live then.
    sizes_.assign(sizes_.size(), kFreed);
    Bytes live;
    const auto take = [&](AllocationId id, Bytes size) {
      if (id >= sizes_.size() || sizes_[id] != kFreed) return;
      sizes_[id] = size;
      live += size;
    };
    for (const StartAllocation& start : schedule_.start_allocations()) {
      if (start.state == BlockState::kAllocated) take(start.id, start.requested_size);
    }
    const auto walk = [&](const auto& events) {
      uint64_t i = 0;
      for (const Event& event : events) {
        if (until_ ? i == until_ : live == table_.peak.live || i > table_.peak.event) break;
        if (event.kind == EventKind::kAlloc) {
          take(event.id, event.size);
          if (event.id < stacks_.size()) stacks_[event.id] = event.text_or_stack;
        } else if ((event.kind == EventKind::kFree || event.kind == EventKind::kFreeCompleted) &&
                   event.id < sizes_.size() && sizes_[event.id] != kFreed) {
          live -= std::exchange(sizes_[event.id], kFreed);
        }
        ++i;
      }
    };
    if (schedule_.is_program()) {
      walk(schedule_.requests());
    } else {
      walk(schedule_.recorded());
    }
    for (AllocationId id = 0; id < sizes_.size(); ++id) {
      if (sizes_[id] == kFreed) continue;
      table_.live.emplace_back(id, sizes_[id]);
      table_.stacks.push_back(stacks_[id]);
      const Meaning& meaning = meanings_.of[id];
      table_.evidence[static_cast<size_t>(meaning.evidence)] += sizes_[id];
      ForEachNode(id, [&](Node& node) {
        node.at_peak += sizes_[id];
        node.bytes[static_cast<size_t>(meaning.category)] += sizes_[id];
      });
    }
    for (const Node& node : nodes_) {
      table_.modules.push_back({node.path, node.at_peak, node.most, node.bytes});
    }
    std::sort(table_.modules.begin(), table_.modules.end(),
              [](const ModuleUse& a, const ModuleUse& b) { return a.path < b.path; });
  }

  const Schedule& schedule_;
  const Meanings& meanings_;
  const std::optional<uint64_t> until_;
  std::vector<Bytes> sizes_;  // of what is live
  std::vector<uint32_t> stacks_;
  std::vector<Node> nodes_;
  std::vector<uint32_t> node_of_module_;
  CategoryPeak now_;
  CategoryTable table_;
};

}  // namespace

CategoryTable CategoriesOverTime(const Schedule& schedule, const Meanings& meanings,
                                 std::optional<uint64_t> until) {
  return Walker(schedule, meanings, until).Walk();
}

}  // namespace memreplay

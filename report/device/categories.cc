#include "report/device/categories.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "report/words/text.h"
#include "sim/category/category_table.h"
#include "sim/category/meanings.h"
#include "sim/workload/peak_holdings.h"
#include "trace/schedule/schedule.h"
#include "trace/value/bounded.h"
#include "trace/value/memory_state.h"

namespace memreplay {
namespace {

constexpr int kMaxLines = 100;

using LineKey = std::tuple<Category, bool, std::string>;  // has_stack

void AddBytes(const BytesByCategory& bytes, google::protobuf::Map<std::string, int64_t>* to) {
  for (size_t c = 0; c < kCategories; ++c) {
    if (bytes[c] == Bytes()) continue;
    (*to)[std::string(CategoryName(static_cast<Category>(c)))] = bytes[c].signed_value();
  }
}

// Returns where memory runs out in the run that `report` describes, in the events of the file.
std::optional<uint64_t> OutOfMemoryOf(const Schedule& schedule, const proto::DeviceReport& report) {
  if (report.oom().verdict() != proto::Verdict::none && report.oom().event_index() >= 0) {
    return static_cast<uint64_t>(report.oom().event_index());
  }
  if (report.has_first_oom()) return static_cast<uint64_t>(report.first_oom().event_index());
  if (report.mode() != proto::Mode::as_recorded && report.mode() != proto::Mode::inspect) {
    return std::nullopt;
  }
  if (report.recorded().ooms() == 0) return std::nullopt;
  const EventView recorded = schedule.recorded();
  for (size_t i = recorded.size(); i > 0; --i) {
    if (recorded.kind(i - 1) == EventKind::kOom) return i - 1;
  }
  return std::nullopt;
}

struct HeldByStack {
  uint32_t stack = 0;
  int64_t bytes = 0;
  int64_t requested = 0;
  int64_t allocations = 0;
};

// Lists holders. `all` has most first.
proto::Held List(const std::vector<HeldByStack>& all, StackNames& names,
                 const HeldOptions& options) {
  proto::Held held;
  held.set_filter(options.filter);
  for (const HeldByStack& one : all) {
    const bool is_listed = static_cast<size_t>(held.stacks_size()) < options.top;
    proto::Stack stack;
    if (is_listed || !options.filter.empty()) stack = names.Of(one.stack);
    if (!options.filter.empty() && !StackHas(stack, options.filter)) continue;
    held.set_bytes(held.bytes() + one.bytes);
    held.set_requested_bytes(held.requested_bytes() + one.requested);
    held.set_allocations(held.allocations() + one.allocations);
    if (!is_listed) {
      held.set_left_out_stacks(held.left_out_stacks() + 1);
      continue;
    }
    proto::HeldBytes& row = *held.add_stacks();
    *row.mutable_stack() = std::move(stack);
    row.set_bytes(one.bytes);
    row.set_requested_bytes(one.requested);
    row.set_allocations(one.allocations);
  }
  return held;
}

}  // namespace

void DescribeBlocks(const Study& study, const MemoryState& state, StackNames& names,
                    google::protobuf::RepeatedPtrField<proto::Segment>* segments) {
  const Meanings& meanings = study.meanings();
  for (int s = 0; s < segments->size() && static_cast<size_t>(s) < state.size(); ++s) {
    const SegmentInfo& segment = state[static_cast<size_t>(s)];
    for (int b = 0; b < segments->Get(s).blocks_size(); ++b) {
      const BlockInfo& from = segment.blocks[static_cast<size_t>(b)];
      if (from.state == BlockState::kInactive) continue;
      proto::Block& to = *segments->Mutable(s)->mutable_blocks(b);
      to.set_stack(names.Label(from.stack));
      DescribeAllocation(meanings, from.id, &to);
    }
  }
}

void AddCategories(const Study& study, StackNames& names, proto::DeviceReport* device) {
  const Schedule& schedule = study.recording();
  const Meanings& meanings = study.meanings();
  const std::optional<uint64_t> until = OutOfMemoryOf(schedule, *device);
  std::optional<CategoryTable> at_end;
  if (until.has_value()) at_end = CategoriesOverTime(schedule, meanings, until);
  const CategoryTable& table = until.has_value() ? *at_end : study.categories();
  proto::Categories& report = *device->mutable_categories();
  report.set_at_out_of_memory(until.has_value());
  AddBytes(table.peak.bytes, report.mutable_bytes_by_category());
  report.set_told(meanings.is_noted);
  for (const CategoryPeak& peak : table.phases) {
    proto::Categories::Phase& phase = *report.add_phases();
    phase.set_name(std::string(PhaseName(peak.phase)));
    phase.set_step(peak.step);
    phase.set_live_bytes(peak.live.signed_value());
    phase.set_event(static_cast<int64_t>(peak.event));
    AddBytes(peak.bytes, phase.mutable_bytes_by_category());
  }
  report.set_peak_bytes(table.peak.live.signed_value());
  report.set_peak_phase(std::string(PhaseName(table.peak.phase)));
  report.set_peak_step(meanings.trains ? table.peak.step : 0);
  report.set_peak_in_vain(table.peak.is_in_vain);
  report.set_peak_event(static_cast<int64_t>(table.peak.event));
  for (size_t e = 0; e < kEvidences; ++e) {
    if (table.evidence[e] == Bytes()) continue;
    (*report.mutable_evidence_bytes())[std::string(EvidenceName(static_cast<Evidence>(e)))] =
        table.evidence[e].signed_value();
  }
  for (const ModuleUse& use : table.modules) {
    if (use.path.empty() || use.most == Bytes()) continue;
    proto::Categories::Module& module = *report.add_modules();
    module.set_path(CleanText(use.path));
    module.set_live_bytes(use.at_peak.signed_value());
    module.set_peak_live_bytes(use.most.signed_value());
    AddBytes(use.bytes, module.mutable_bytes_by_category());
  }
  std::vector<bool> is_of_start(schedule.allocation_count());
  for (const StartAllocation& start : schedule.start_allocations()) is_of_start[start.id] = true;
  std::map<LineKey, std::pair<int64_t, int64_t>> lines;
  for (size_t i = 0; i < table.live.size(); ++i) {
    const auto& [id, size] = table.live[i];
    auto& [bytes, count] =
        lines[{meanings.of[id].category, table.stacks[i] != kNoStack, names.Line(table.stacks[i])}];
    bytes = BoundedSum(bytes, size.signed_value());
    ++count;
    if (meanings.of[id].category == Category::kUnknown && is_of_start[id]) {
      report.set_start_unknown_bytes(BoundedSum(report.start_unknown_bytes(), size.signed_value()));
    }
  }
  for (const auto& [key, sum] : lines) {
    proto::Categories::Line& row = *report.add_lines();
    const auto& [category, has_stack, line] = key;
    row.set_category(std::string(CategoryName(category)));
    row.set_line(CleanText(line));
    row.set_has_stack(has_stack);
    row.set_live_bytes(sum.first);
    row.set_allocations(sum.second);
  }
  auto& shown = *report.mutable_lines();
  absl::c_stable_sort(shown,
                      [](const auto& a, const auto& b) { return a.live_bytes() > b.live_bytes(); });
  if (shown.size() > kMaxLines) shown.DeleteSubrange(kMaxLines, shown.size() - kMaxLines);
}

proto::Held HeldAtEnd(const Trace& trace, size_t device_index, StackNames& names,
                      const HeldOptions& options) {
  const DeviceTrace& device = trace.devices[device_index];
  absl::flat_hash_map<uint32_t, HeldByStack> by_stack;
  for (const SegmentInfo& segment : device.final_state) {
    for (const BlockInfo& block : segment.blocks) {
      if (block.state == BlockState::kInactive) continue;
      HeldByStack& sum = by_stack[block.stack];
      sum.stack = block.stack;
      sum.bytes += block.size.signed_value();
      sum.requested += block.requested_size.signed_value();
      ++sum.allocations;
    }
  }
  std::vector<HeldByStack> all;
  // In any order.
  for (const auto& [stack, sum] : by_stack) all.push_back(sum);
  absl::c_sort(all, [](const HeldByStack& a, const HeldByStack& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.stack < b.stack;
  });
  proto::Held held = List(all, names, options);
  held.set_at_event(std::ssize(device.events));
  return held;
}

proto::Held HeldAtPeak(const Schedule& schedule, StackNames& names, const HeldOptions& options) {
  const PeakHoldings peak = HoldingsAtPeak(schedule);
  std::vector<HeldByStack> all;
  for (const PeakHolding& holding : peak.stacks) {
    all.push_back({holding.stack, 0, holding.requested.signed_value(),
                   static_cast<int64_t>(holding.allocations)});
  }
  proto::Held held = List(all, names, options);
  held.set_at_event(schedule.requests().empty()
                        ? -1
                        : static_cast<int64_t>(EventOfRequest(schedule, peak.request)));
  return held;
}

}  // namespace memreplay

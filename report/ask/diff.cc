#include "report/ask/diff.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "report/device/device_report.h"
#include "report/words/stack_names.h"
#include "sim/category/category_table.h"
#include "sim/category/meanings.h"
#include "sim/recording/replay_settings.h"
#include "sim/workload/peak_holdings.h"
#include "sim/workload/step_growth.h"
#include "sim/workload/steps.h"
#include "trace/schedule/schedule.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

const proto::DeviceReport* FindDevice(const proto::Report& report, int device) {
  for (const proto::DeviceReport& candidate : report.devices()) {
    if (candidate.device() == device) return &candidate;
  }
  return nullptr;
}

using Figure = proto::DeviceDiff::Figure;

// The figures of a device, by name.
constexpr struct {
  std::string_view name;
  Figure::Unit unit;
  int64_t (*of)(const proto::DeviceReport& device);
} kFigures[] = {
    {"peak_reserved", Figure::bytes, [](const auto& d) { return d.peak_reserved_bytes(); }},
    {"peak_requested", Figure::bytes, [](const auto& d) { return d.peak_requested_bytes(); }},
    {"peak_allocated", Figure::bytes, [](const auto& d) { return d.peak_allocated_bytes(); }},
    {"peak_active", Figure::bytes, [](const auto& d) { return d.peak_active_bytes(); }},
    {"final_reserved", Figure::bytes,
     [](const auto& d) { return d.inventory().final_reserved_bytes(); }},
    {"final_allocated", Figure::bytes,
     [](const auto& d) { return d.inventory().final_allocated_bytes(); }},
    {"reserved_minus_active", Figure::bytes,
     [](const auto& d) { return d.fragmentation().reserved_minus_active_bytes(); }},
    {"inactive_split", Figure::bytes,
     [](const auto& d) { return d.fragmentation().inactive_split_bytes(); }},
    {"internal", Figure::bytes, [](const auto& d) { return d.fragmentation().internal_bytes(); }},
    {"ooms", Figure::events, [](const auto& d) { return d.ooms(); }},
    {"events", Figure::events, [](const auto& d) { return d.events(); }},
};

void AddFigures(const proto::DeviceReport& a, const proto::DeviceReport& b,
                proto::DeviceDiff* diff) {
  const auto add = [diff](std::string_view name, Figure::Unit unit, int64_t in_a, int64_t in_b) {
    if (in_a == 0 && in_b == 0) return;
    Figure& figure = *diff->add_figures();
    figure.set_name(std::string(name));
    figure.set_unit(unit);
    figure.set_a(in_a);
    figure.set_b(in_b);
  };
  for (const auto& row : kFigures) add(row.name, row.unit, row.of(a), row.of(b));
  std::map<std::string, std::pair<int64_t, int64_t>> actions;
  // In any order.
  for (const auto& [action, count] : a.inventory().actions()) actions[action].first = count;
  // In any order.
  for (const auto& [action, count] : b.inventory().actions()) actions[action].second = count;
  for (const auto& [action, counts] : actions) {
    add(action, Figure::events, counts.first, counts.second);
  }
}

// What one side's trace says in addition to its report.
struct TraceSide {
  std::map<std::string, std::pair<proto::Stack, PeakHolding>> stacks;  // by all frames
  Steps steps;
  StepGrowth growth;
  BytesByCategory categories = {};
};

std::string AllFrames(const Trace& trace, uint32_t stack) {
  std::string text;
  for (const uint32_t index : trace.stacks[stack]) {
    const Frame& frame = trace.stacks.frame(index);
    StrAppend(&text, trace.strings[frame.filename], "\n", trace.strings[frame.name], "\n",
              frame.line, "\n");
  }
  return text;
}

std::optional<TraceSide> Read(const DiffSide& side, int device) {
  if (side.trace == nullptr) return std::nullopt;
  for (size_t index = 0; index < side.trace->devices.size(); ++index) {
    const DeviceTrace& events = side.trace->devices[index];
    if (events.device != device) continue;
    TraceSide result;
    StackNames names(*side.trace);
    const Schedule schedule = Schedule::Build(side.trace, index);
    result.categories = CategoriesOverTime(schedule, FindMeanings(schedule)).peak.bytes;
    for (const PeakHolding& holding : HoldingsAtPeak(schedule).stacks) {
      auto& [stack, sum] = result.stacks[AllFrames(*side.trace, holding.stack)];
      stack = names.Of(holding.stack);
      sum.requested += holding.requested;
      sum.allocations += holding.allocations;
    }
    result.steps = FindSteps(*side.trace, events, events.events.size());
    result.growth = GrowthPerStep(*side.trace, events, result.steps, events.events.size());
    return result;
  }
  return std::nullopt;
}

// Puts those that changed most first.
template <typename Changes>
void SortByChange(Changes* changes) {
  const auto by = [](const auto& change) { return std::abs(change.b_bytes() - change.a_bytes()); };
  absl::c_stable_sort(*changes, [&](const auto& a, const auto& b) { return by(a) > by(b); });
}

void AddStacks(const TraceSide& a, const TraceSide& b, const HeldOptions& options,
               proto::DeviceDiff* diff) {
  std::vector<proto::DeviceDiff::StackChange> changes;
  const auto add = [&](const proto::Stack& stack, const PeakHolding& in_a,
                       const PeakHolding& in_b) {
    if (in_a.requested == in_b.requested) return;
    if (!options.filter.empty() && !StackHas(stack, options.filter)) return;
    proto::DeviceDiff::StackChange& change = changes.emplace_back();
    *change.mutable_stack() = stack;
    change.set_a_bytes(in_a.requested.signed_value());
    change.set_b_bytes(in_b.requested.signed_value());
    change.set_a_allocations(static_cast<int64_t>(in_a.allocations));
    change.set_b_allocations(static_cast<int64_t>(in_b.allocations));
  };
  for (const auto& [frames, held] : a.stacks) {
    const auto other = b.stacks.find(frames);
    add(held.first, held.second, other == b.stacks.end() ? PeakHolding() : other->second.second);
  }
  for (const auto& [frames, held] : b.stacks) {
    if (!a.stacks.contains(frames)) add(held.first, PeakHolding(), held.second);
  }
  SortByChange(&changes);
  diff->set_changed_stacks(std::ssize(changes));
  for (auto& change : changes) {
    if (static_cast<size_t>(diff->stacks_size()) == options.top) break;
    *diff->add_stacks() = std::move(change);
  }
}

// Returns bytes by name; for a report, what it says itself.
std::map<std::string, int64_t> CategoryBytes(const proto::DeviceReport& report,
                                             const std::optional<TraceSide>& trace) {
  const auto& told = report.categories().bytes_by_category();
  std::map<std::string, int64_t> bytes(told.begin(), told.end());
  for (size_t c = 0; trace.has_value() && c < kCategories; ++c) {
    if (trace->categories[c] == Bytes()) continue;
    bytes[std::string(CategoryName(static_cast<Category>(c)))] =
        trace->categories[c].signed_value();
  }
  return bytes;
}

void AddCategoryChanges(const std::map<std::string, int64_t>& a,
                        const std::map<std::string, int64_t>& b, proto::DeviceDiff* diff) {
  if (a.empty() || b.empty()) return;
  std::map<std::string, std::pair<int64_t, int64_t>> both;
  for (const auto& [name, bytes] : a) both[name].first = bytes;
  for (const auto& [name, bytes] : b) both[name].second = bytes;
  for (const auto& [name, bytes] : both) {
    if (bytes.first == bytes.second) continue;
    proto::DeviceDiff::CategoryChange& change = *diff->add_categories();
    change.set_category(name);
    change.set_a_bytes(bytes.first);
    change.set_b_bytes(bytes.second);
  }
  SortByChange(diff->mutable_categories());
}

// Compares requested bytes live at the beginning of each step, relative to the first one: what the
// steps of both add.
void AlignSteps(const TraceSide& a, const TraceSide& b, proto::DeviceDiff* diff) {
  proto::DeviceDiff::Steps& steps = *diff->mutable_steps();
  steps.set_a(static_cast<int64_t>(a.steps.count()));
  steps.set_b(static_cast<int64_t>(b.steps.count()));
  steps.set_a_allocations_per_step(static_cast<int64_t>(a.steps.allocations_per_step));
  steps.set_b_allocations_per_step(static_cast<int64_t>(b.steps.allocations_per_step));
  steps.set_a_growth_bytes_per_step(a.growth.median);
  steps.set_b_growth_bytes_per_step(b.growth.median);
  steps.set_a_swing_bytes(a.growth.swing);
  steps.set_b_swing_bytes(b.growth.swing);
  const size_t aligned = std::min(a.growth.live.size(), b.growth.live.size());
  steps.set_aligned(aligned == 0 ? 0 : static_cast<int64_t>(aligned - 1));
  steps.set_first_difference(-1);
  for (size_t i = 1; i < aligned; ++i) {
    if (a.growth.live[i] - a.growth.live[0] == b.growth.live[i] - b.growth.live[0]) continue;
    steps.set_first_difference(static_cast<int64_t>(i - 1));
    break;
  }
}

}  // namespace

absl::StatusOr<DiffSide> SideOf(std::shared_ptr<const Trace> trace, std::string_view path) {
  ASSIGN_OR_RETURN(const ProfileChoice torch, ChooseProfile(*trace, std::nullopt));
  DiffSide side{StartReport("inspect", path, *trace), std::move(trace)};
  for (size_t index = 0; index < side.trace->devices.size(); ++index) {
    *side.report.add_devices() = ReportContents(*side.trace, index, torch);
  }
  return side;
}

proto::Diff DiffReports(const DiffSide& a, const DiffSide& b, const HeldOptions& options) {
  proto::Diff diff;
  diff.set_a(a.report.file());
  diff.set_b(b.report.file());
  std::set<int> numbers;
  for (const auto& device : a.report.devices()) numbers.insert(device.device());
  for (const auto& device : b.report.devices()) numbers.insert(device.device());
  for (const int number : numbers) {
    proto::DeviceDiff& device = *diff.add_devices();
    device.set_device(number);
    const proto::DeviceReport* in_a = FindDevice(a.report, number);
    const proto::DeviceReport* in_b = FindDevice(b.report, number);
    device.set_in_a(in_a != nullptr);
    device.set_in_b(in_b != nullptr);
    if (in_a == nullptr || in_b == nullptr) continue;
    device.set_a_conf(in_a->conf());
    device.set_b_conf(in_b->conf());
    device.set_a_torch(in_a->torch_profile());
    device.set_b_torch(in_b->torch_profile());
    AddFigures(*in_a, *in_b, &device);
    const std::optional<TraceSide> trace_a = Read(a, number);
    const std::optional<TraceSide> trace_b = Read(b, number);
    AddCategoryChanges(CategoryBytes(*in_a, trace_a), CategoryBytes(*in_b, trace_b), &device);
    if (!trace_a.has_value() || !trace_b.has_value()) continue;
    AddStacks(*trace_a, *trace_b, options, &device);
    AlignSteps(*trace_a, *trace_b, &device);
  }
  return diff;
}

}  // namespace memreplay

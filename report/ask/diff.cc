#include "report/ask/diff.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>
#include <vector>

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

void AddFigure(std::string_view name, proto::DeviceDiff::Figure::Unit unit, int64_t a, int64_t b,
               proto::DeviceDiff* diff) {
  if (a == 0 && b == 0) return;
  proto::DeviceDiff::Figure& figure = *diff->add_figures();
  figure.set_name(std::string(name));
  figure.set_unit(unit);
  figure.set_a(a);
  figure.set_b(b);
}

void AddFigures(const proto::DeviceReport& a, const proto::DeviceReport& b,
                proto::DeviceDiff* diff) {
  AddFigure("peak_reserved", proto::DeviceDiff::Figure::bytes, a.peak_reserved_bytes(),
            b.peak_reserved_bytes(), diff);
  AddFigure("peak_requested", proto::DeviceDiff::Figure::bytes, a.peak_requested_bytes(),
            b.peak_requested_bytes(), diff);
  AddFigure("peak_allocated", proto::DeviceDiff::Figure::bytes, a.peak_allocated_bytes(),
            b.peak_allocated_bytes(), diff);
  AddFigure("peak_active", proto::DeviceDiff::Figure::bytes, a.peak_active_bytes(),
            b.peak_active_bytes(), diff);
  AddFigure("final_reserved", proto::DeviceDiff::Figure::bytes,
            a.inventory().final_reserved_bytes(), b.inventory().final_reserved_bytes(), diff);
  AddFigure("final_allocated", proto::DeviceDiff::Figure::bytes,
            a.inventory().final_allocated_bytes(), b.inventory().final_allocated_bytes(), diff);
  AddFigure("reserved_minus_active", proto::DeviceDiff::Figure::bytes,
            a.fragmentation().reserved_minus_active_bytes(),
            b.fragmentation().reserved_minus_active_bytes(), diff);
  AddFigure("inactive_split", proto::DeviceDiff::Figure::bytes,
            a.fragmentation().inactive_split_bytes(), b.fragmentation().inactive_split_bytes(),
            diff);
  AddFigure("internal", proto::DeviceDiff::Figure::bytes, a.fragmentation().internal_bytes(),
            b.fragmentation().internal_bytes(), diff);
  AddFigure("ooms", proto::DeviceDiff::Figure::events, a.ooms(), b.ooms(), diff);
  AddFigure("events", proto::DeviceDiff::Figure::events, a.events(), b.events(), diff);
  std::set<std::string> actions;
  // In any order.
  for (const auto& [action, count] : a.inventory().actions()) actions.insert(action);
  // In any order.
  for (const auto& [action, count] : b.inventory().actions()) actions.insert(action);
  const auto count = [](const proto::DeviceReport& device, const std::string& action) {
    const auto found = device.inventory().actions().find(action);
    return found == device.inventory().actions().end() ? int64_t{0} : found->second;
  };
  for (const std::string& action : actions) {
    AddFigure(action, proto::DeviceDiff::Figure::events, count(a, action), count(b, action), diff);
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
  std::ranges::stable_sort(changes, [](const auto& x, const auto& y) {
    return std::abs(x.b_bytes() - x.a_bytes()) > std::abs(y.b_bytes() - y.a_bytes());
  });
  diff->set_changed_stacks(static_cast<int64_t>(changes.size()));
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
  std::vector<proto::DeviceDiff::CategoryChange> changes;
  for (const auto& [name, bytes] : both) {
    if (bytes.first == bytes.second) continue;
    proto::DeviceDiff::CategoryChange& change = changes.emplace_back();
    change.set_category(name);
    change.set_a_bytes(bytes.first);
    change.set_b_bytes(bytes.second);
  }
  std::ranges::stable_sort(changes, [](const auto& x, const auto& y) {
    return std::abs(x.b_bytes() - x.a_bytes()) > std::abs(y.b_bytes() - y.a_bytes());
  });
  for (auto& change : changes) *diff->add_categories() = std::move(change);
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

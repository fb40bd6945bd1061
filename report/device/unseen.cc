#include <algorithm>

#include "report/device/device_report.h"
#include "report/words/text.h"
#include "sim/workload/step_growth.h"
#include "sim/workload/steps.h"

namespace memreplay {
namespace {

constexpr size_t kMaxEnded = 400;  // bytes

}  // namespace

void AddUnseen(const Study& study, const proto::Inventory& inventory, proto::DeviceReport* report) {
  const Schedule& schedule = study.schedule();
  if (schedule.is_program()) return;
  report->set_is_capacity_given(study.settings().capacity.has_value());
  const Trace& trace = schedule.trace();
  const DeviceTrace& device = schedule.device_trace();
  const auto is_oom = [](const Event& event) { return event.kind == EventKind::kOom; };
  const auto first = std::find_if(device.events.begin(), device.events.end(), is_oom);
  const bool ran_out = first != device.events.end();
  if (!ran_out && trace.ended.empty() && schedule.is_cold() && !schedule.requests().empty()) return;

  proto::Unseen& unseen = *report->mutable_unseen();
  unseen.set_first_oom_event(-1);
  unseen.set_has_events(!schedule.requests().empty());
  unseen.set_ended(CleanText(trace.ended, kMaxEnded));
  if (!schedule.is_cold()) {
    unseen.set_start_allocations(inventory.start_allocations());
    unseen.set_start_requested_bytes(inventory.start_requested_bytes());
    unseen.set_start_reserved_bytes(inventory.start_reserved_bytes());
  }
  if (!ran_out) return;
  const auto position = static_cast<uint64_t>(first - device.events.begin());
  unseen.set_ooms(std::count_if(first, device.events.end(), is_oom));
  unseen.set_first_oom_event(static_cast<int64_t>(position));
  const Steps steps = FindSteps(trace, device, position);
  if (steps.count() == 0) return;
  const StepGrowth growth = GrowthPerStep(trace, device, steps, device.events.size());
  unseen.set_steps(static_cast<int64_t>(steps.count()));
  unseen.set_growth_bytes_per_step(growth.median);
  unseen.set_may_be_layers(MayBeLayers(steps, growth));
}

}  // namespace memreplay

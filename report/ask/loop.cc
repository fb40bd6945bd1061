#include "report/ask/loop.h"

#include <optional>
#include <utility>

#include "report/answer/build_report.h"
#include "report/answer/loop_report.h"
#include "sim/whatif/control.h"
#include "sim/whatif/look_back.h"
#include "sim/whatif/one_stream.h"
#include "sim/whatif/stream_cost.h"

namespace memreplay {

absl::Status AskLoop(const Schedule& schedule, const ReplaySettings& settings, StackNames& names,
                     proto::DeviceReport* report) {
  std::optional<StreamCost> cost;
  if (schedule.is_cold() && AllocatesOnSeveralStreams(schedule)) {
    const absl::StatusOr<StreamCost> measured = CostOfStreams(schedule, settings);
    if (!measured.ok()) return measured.status();
    cost = *measured;
  }
  std::optional<LookBack> look_back;
  if (!schedule.device_trace().events.empty()) {
    absl::StatusOr<LookBack> looked = LookBackOn(schedule, settings);
    if (!looked.ok()) return looked.status();
    look_back = *std::move(looked);
  }
  const absl::StatusOr<WhatIfBasis> basis = FindBasis(
      schedule, settings,
      look_back.has_value() && look_back->replay.has_value() ? &*look_back->replay : nullptr);
  if (!basis.ok()) return basis.status();
  *report->mutable_loop() =
      ReportLoop(schedule, FindLoop(schedule), names, cost.has_value() ? &*cost : nullptr,
                 look_back.has_value() ? &*look_back : nullptr, report->recorded());
  AddControl(*basis, settings.order, report);
  return absl::OkStatus();
}

}  // namespace memreplay

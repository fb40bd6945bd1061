#include "report/ask/loop.h"

#include <optional>

#include "report/answer/loop_report.h"
#include "sim/whatif/look_back.h"
#include "sim/whatif/one_stream.h"
#include "sim/whatif/stream_cost.h"

namespace memreplay {

absl::StatusOr<proto::LoopReport> AskLoop(const Schedule& schedule, const ReplaySettings& settings,
                                          const proto::RecordedPeaks& recorded) {
  std::optional<StreamCost> cost;
  if (schedule.is_cold() && AllocatesOnSeveralStreams(schedule)) {
    const absl::StatusOr<StreamCost> measured = CostOfStreams(schedule, settings);
    if (!measured.ok()) return measured.status();
    cost = *measured;
  }
  if (schedule.requests().empty()) return ReportLoop(schedule, nullptr, nullptr, recorded);
  const absl::StatusOr<LookBack> look_back = LookBackOn(schedule, settings);
  if (!look_back.ok()) return look_back.status();
  return ReportLoop(schedule, cost.has_value() ? &*cost : nullptr, &*look_back, recorded);
}

}  // namespace memreplay

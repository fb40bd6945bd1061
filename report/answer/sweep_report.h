// What a sweep, or a search for the smallest device, amounts to -> Report.
#ifndef MEMREPLAY_REPORT_ANSWER_SWEEP_REPORT_H_
#define MEMREPLAY_REPORT_ANSWER_SWEEP_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "proto/report.pb.h"
#include "sim/observe/peak_cause.h"
#include "sim/whatif/smallest_capacity.h"
#include "sim/whatif/sweep.h"
#include "sim/workload/lifetimes.h"
#include "sim/workload/packing.h"
#include "trace/schedule/schedule.h"

namespace memreplay {

struct SweepAnswer {
  std::vector<SweepRow> rows;  // best first
  SweepRow current;            // the settings in force, whether or not among the rows
  bool searched = false;
  size_t shown = 10;
  std::string costs_of;  // what SweepRow::call_nanoseconds was measured on; "": not known
  PeakLive live;
  Packing packing;
  // Why the current settings reserve what they do, and the worst of the rows.
  std::optional<PeakCause> current_cause;
  std::optional<PeakCause> worst_cause;
};

// Fills `report`, which describes the replay of the current settings, and makes
// its mode "sweep".
void AddSweep(const SweepAnswer& answer, const Schedule& schedule, const TorchProfile& profile,
              proto::DeviceReport* report);

struct FitRow {
  Candidate candidate;
  bool is_current = false;
  std::string refused;
  SmallestCapacity found;
  std::optional<Bytes> other_order_safe;  // with addresses in the other order
};

void AddFits(const std::vector<FitRow>& rows, const PeakLive& live, const Packing& packing,
             proto::DeviceReport* report);

// Copies what belongs to the first device to the report's own fields.
void LiftSweep(proto::Report* report);

// What to know before using settings: one sentence each, the worst first.
std::vector<std::string> RisksOf(const AllocatorConfig& config, std::optional<double> fraction);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_ANSWER_SWEEP_REPORT_H_

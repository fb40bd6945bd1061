// Reports what takes longer than reading a file: steps, holders, streams, what may be missing.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "proto/report.pb.h"
#include "report/words/stack_names.h"
#include "sim/observe/timeline.h"
#include "sim/recording/replay_settings.h"
#include "sim/study/study.h"
#include "sim/whatif/look_back.h"
#include "sim/whatif/stream_cost.h"
#include "sim/workload/step_growth.h"
#include "sim/workload/steps.h"
#include "trace/schedule/schedule.h"

namespace memreplay {

proto::StepSummary StepsReport(StackNames& names, const Steps& steps, const StepGrowth& growth);

proto::LeakEvidence LeakReport(StackNames& names, const DeviceTrace& device, const Steps& steps,
                               const SiteGrowth& leak);

// Adds how memory changed over a run.
void AddTimeline(const std::vector<TimelineBucket>& buckets, proto::LoopReport* loop);

// The steps of a whole schedule.
struct Loop {
  Steps steps;
  StepGrowth growth;
};
Loop FindLoop(const Schedule& schedule);

// Returns the report of "inspect --deep". Null arguments were not simulated. `recorded` is from
// DescribeContents().
proto::LoopReport ReportLoop(const Schedule& schedule, const Loop& found, StackNames& names,
                             const StreamCost* cost, const LookBack* look_back,
                             const proto::RecordedPeaks& recorded);

// Adds the loop, and the control of its what-ifs, to what `report` says about the file. Errors:
// ReplayWhatIf()'s.
absl::Status AskLoop(const Study& study, StackNames& names, proto::DeviceReport* report);

}  // namespace memreplay

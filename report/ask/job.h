// Several reports of one job, side by side: the worst rank, the spread and the outliers.
#ifndef MEMREPLAY_REPORT_ASK_JOB_H_
#define MEMREPLAY_REPORT_ASK_JOB_H_

#include "absl/types/span.h"
#include "proto/report.pb.h"

namespace memreplay {

// One row for each device of a report, in order. The figure that is compared:
// peak reserved, of the recording for "inspect" and "oom", of the run for "replay",
// at the event where a simulated device runs out of memory; what was requested where nothing is
// reserved (programs). A file without an answer has a row with its error, device -1 and no figures.
void AddToJob(const proto::Report& report, proto::Job* job);

// Fills in what the rows amount to. Outliers: report/ask/outliers.h.
void FinishJob(proto::Job* job);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_ASK_JOB_H_

// Puts several reports of one job side by side: the worst rank, the spread and the outliers.
#ifndef MEMREPLAY_REPORT_ASK_JOB_H_
#define MEMREPLAY_REPORT_ASK_JOB_H_

#include "absl/types/span.h"
#include "proto/report.pb.h"

namespace memreplay {

// Adds one row for each device of a report, in order. The figure compared is peak reserved memory,
// from the recording for "inspect" and "oom" and from the run for "replay", or reserved memory at
// the event where a simulated device runs out of memory, or requested memory if nothing is reserved
// (written schedules). A file without an answer has a row with its error, device -1 and no figures.
void AddToJob(const proto::Report& report, proto::Job* job);

// Fills in what follows from the rows. Outliers: report/ask/outliers.h.
void FinishJob(proto::Job* job);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_ASK_JOB_H_

// Advice about a script, from runs of the script or from an edited recording.
#ifndef MEMREPLAY_REPORT_DEVICE_ADVICE_H_
#define MEMREPLAY_REPORT_DEVICE_ADVICE_H_

#include "proto/report.pb.h"

namespace memreplay {

// Fills in what follows from the sizes of a row, the goal and the run without a change: what the
// row saves, whether it fits, and what is to spare.
void CompareRow(const proto::Advice& advice, proto::Advice::Row* row);

// Sorts the rows: those that fit first, cheapest first, then the others by what they save, then in
// the same order those that cannot be written, and at the end those that could not be tried.
void RankRows(proto::Advice* advice);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_DEVICE_ADVICE_H_

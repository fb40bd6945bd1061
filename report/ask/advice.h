// Advice, whether from runs of a script or from a recording that was edited.
#ifndef MEMREPLAY_REPORT_ASK_ADVICE_H_
#define MEMREPLAY_REPORT_ASK_ADVICE_H_

#include "proto/report.pb.h"

namespace memreplay {

// Fills what follows from the sizes of a row, the goal and the run without a change: what it saves,
// whether it fits, what is to spare.
void CompareRow(const proto::Advice& advice, proto::Advice::Row* row);

// Those that fit come first, the cheapest of them first; then the others by what they save; in the
// end those that could not be tried.
void RankRows(proto::Advice* advice);

// Whether it fits without a change or with one of the rows; true where there is no goal.
bool AdviceFits(const proto::Advice& advice);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_ASK_ADVICE_H_

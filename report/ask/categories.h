// What memory is for, and the diagnosis that follows from it.
#ifndef MEMREPLAY_REPORT_ASK_CATEGORIES_H_
#define MEMREPLAY_REPORT_ASK_CATEGORIES_H_

#include "proto/report.pb.h"
#include "report/words/stack_names.h"
#include "sim/category/category_table.h"
#include "sim/category/meanings.h"
#include "trace/schedule/schedule.h"

namespace memreplay {

// Phases, categories, modules and lines, and the diagnosis: "Peak 11.5 GiB in the forward pass of
// step 1: 6.56 GiB activations (1.50 GiB of them by nn_utils.py:6 softmax, 24 allocations), 3.15
// GiB optimizer state, 1.58 GiB parameters." It is empty where more than half of the memory at the
// peak is unknown. `names` of the schedule's trace. O(events).
proto::Categories ReportCategories(const Schedule& schedule, StackNames& names);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_ASK_CATEGORIES_H_

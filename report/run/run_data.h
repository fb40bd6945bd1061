// Packs a whole run as the page carries it: every allocation, range and event, in columns, with the
// stacks and names that they refer to.
#pragma once

#include <cstddef>

#include "report/page/render_html.h"
#include "report/run/run_log.h"
#include "sim/category/meanings.h"
#include "trace/schedule/schedule.h"

namespace memreplay {

// Makes the columns that docs/report.md, "The data", describes, on at most `threads` threads.
// O(events + frames of the stacks that occur).
RunData MakeRunData(const Schedule& schedule, const Meanings& meanings, const RunLog& log,
                    size_t threads);

}  // namespace memreplay

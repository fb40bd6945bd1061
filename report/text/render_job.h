// Renders the ranks of a job, or several files, side by side.
#ifndef MEMREPLAY_REPORT_TEXT_RENDER_JOB_H_
#define MEMREPLAY_REPORT_TEXT_RENDER_JOB_H_

#include "proto/report.pb.h"
#include "report/words/lines.h"

namespace memreplay {

// Returns the table; "" for fewer than two rows.
Text RenderJobText(const proto::Job& job);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_TEXT_RENDER_JOB_H_

// Renders the comparison of two files or two reports.
#ifndef MEMREPLAY_REPORT_TEXT_RENDER_DIFF_H_
#define MEMREPLAY_REPORT_TEXT_RENDER_DIFF_H_

#include "proto/report.pb.h"
#include "report/words/lines.h"

namespace memreplay {

Text RenderDiffText(const proto::Diff& diff);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_TEXT_RENDER_DIFF_H_

// Report -> text for a terminal. The first lines are the answer.
#ifndef MEMREPLAY_REPORT_TEXT_RENDER_TEXT_H_
#define MEMREPLAY_REPORT_TEXT_RENDER_TEXT_H_

#include "proto/report.pb.h"
#include "report/words/lines.h"

namespace memreplay {

// Ends with a newline. Sizes in binary units; exact bytes beside each peak.
Text RenderText(const proto::Report& report);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_TEXT_RENDER_TEXT_H_

// Renders a Report as text for a terminal. The first lines are the answer.
#ifndef MEMREPLAY_REPORT_TEXT_RENDER_TEXT_H_
#define MEMREPLAY_REPORT_TEXT_RENDER_TEXT_H_

#include "proto/report.pb.h"
#include "report/words/lines.h"

namespace memreplay {

// Returns the answers about all devices, and the details of each. Sizes have binary units; peaks
// also have their exact bytes. The text ends with a newline.
Text RenderText(const proto::Report& report);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_TEXT_RENDER_TEXT_H_

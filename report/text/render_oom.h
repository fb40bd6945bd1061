// Renders the text of `memreplay oom`.
#ifndef MEMREPLAY_REPORT_TEXT_RENDER_OOM_H_
#define MEMREPLAY_REPORT_TEXT_RENDER_OOM_H_

#include "proto/report.pb.h"
#include "report/words/lines.h"

namespace memreplay {

// Appends why memory ran out on a device, and what would have helped. `device` has `oom` with a
// verdict other than `none`.
void RenderOom(const proto::DeviceReport& device, Text* answer);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_TEXT_RENDER_OOM_H_

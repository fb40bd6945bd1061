// Renders the report of the command gpu as text for a terminal.
#ifndef MEMREPLAY_REPORT_TEXT_RENDER_GPU_H_
#define MEMREPLAY_REPORT_TEXT_RENDER_GPU_H_

#include "proto/report.pb.h"
#include "report/words/lines.h"

namespace memreplay {

// Renders the answer first: what is confirmed, or where prediction and device first differ, and the
// table of both; then the details. `device` has `gpu`.
Text RenderGpu(const proto::DeviceReport& device);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_TEXT_RENDER_GPU_H_

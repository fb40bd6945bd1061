// Renders the text that `memreplay inspect --deep` adds.
#ifndef MEMREPLAY_REPORT_TEXT_RENDER_LOOP_H_
#define MEMREPLAY_REPORT_TEXT_RENDER_LOOP_H_

#include <string>

#include "proto/report.pb.h"

namespace memreplay {

// Returns memory over the run in a few lines; "" if the report does not have it.
std::string RenderTimelineText(const proto::DeviceReport& device);

std::string RenderLoopText(const proto::DeviceReport& device);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_TEXT_RENDER_LOOP_H_

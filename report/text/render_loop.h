// The text that `memreplay inspect --deep` adds.
#ifndef MEMREPLAY_REPORT_TEXT_RENDER_LOOP_H_
#define MEMREPLAY_REPORT_TEXT_RENDER_LOOP_H_

#include <string>

#include "proto/report.pb.h"

namespace memreplay {

// What "inspect --deep" adds to a device's section; empty without it.
// Memory over the run in a few lines; "" where it is not in the report.
std::string RenderTimelineText(const proto::DeviceReport& device);

std::string RenderLoopText(const proto::DeviceReport& device);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_TEXT_RENDER_LOOP_H_

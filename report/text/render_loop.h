// The text that `memreplay inspect --deep` adds.
#ifndef MEMREPLAY_REPORT_TEXT_RENDER_LOOP_H_
#define MEMREPLAY_REPORT_TEXT_RENDER_LOOP_H_

#include <string>

#include "proto/report.pb.h"

namespace memreplay {

// What "inspect --deep" adds to a device's section; empty without it.
std::string RenderLoopText(const proto::DeviceReport& device);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_TEXT_RENDER_LOOP_H_

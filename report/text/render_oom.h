// The text of `memreplay oom`.
#ifndef MEMREPLAY_REPORT_TEXT_RENDER_OOM_H_
#define MEMREPLAY_REPORT_TEXT_RENDER_OOM_H_

#include <string>

#include "proto/report.pb.h"

namespace memreplay {

// The answer of every device first, then what is behind it.
std::string RenderOomText(const proto::Report& report);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_TEXT_RENDER_OOM_H_

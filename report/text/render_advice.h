// Renders what `memreplay advise` found as text.
#ifndef MEMREPLAY_REPORT_TEXT_RENDER_ADVICE_H_
#define MEMREPLAY_REPORT_TEXT_RENDER_ADVICE_H_

#include <string>
#include <string_view>

#include "proto/report.pb.h"

namespace memreplay {

// Renders advice. `what` is the script with its arguments, or the file.
std::string RenderAdvice(std::string_view what, const proto::Advice& advice);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_TEXT_RENDER_ADVICE_H_

// Renders what `memreplay advise` found as text.
#ifndef MEMREPLAY_REPORT_TEXT_RENDER_ADVICE_H_
#define MEMREPLAY_REPORT_TEXT_RENDER_ADVICE_H_

#include <string>
#include <string_view>
#include <vector>

#include "proto/report.pb.h"
#include "report/words/lines.h"

namespace memreplay {

// Renders advice. `what` is the script with its arguments, or the file. `caveats` say why its
// figures are uncertain or lower bounds.
std::string RenderAdvice(std::string_view what, const proto::Advice& advice,
                         const std::vector<Line>& caveats = {});

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_TEXT_RENDER_ADVICE_H_

// What an error text says, explained.
#ifndef MEMREPLAY_REPORT_TEXT_RENDER_EXPLANATION_H_
#define MEMREPLAY_REPORT_TEXT_RENDER_EXPLANATION_H_

#include <string>

#include "proto/report.pb.h"

namespace memreplay {

// The first line says what happened and what to do first; then what to do next, why, and what the
// text has.
std::string RenderExplanationText(const proto::Explanation& explanation);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_TEXT_RENDER_EXPLANATION_H_

// Renders the explanation of an error text.
#ifndef MEMREPLAY_REPORT_TEXT_RENDER_EXPLANATION_H_
#define MEMREPLAY_REPORT_TEXT_RENDER_EXPLANATION_H_

#include <string>

#include "proto/report.pb.h"

namespace memreplay {

// Returns text whose first line says what happened and what to do first; what to do next, why, and
// what the error text contains follow.
std::string RenderExplanationText(const proto::Explanation& explanation);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_TEXT_RENDER_EXPLANATION_H_

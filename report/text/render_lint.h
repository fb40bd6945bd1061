// Renders what a settings string means and what is wrong with it.
#ifndef MEMREPLAY_REPORT_TEXT_RENDER_LINT_H_
#define MEMREPLAY_REPORT_TEXT_RENDER_LINT_H_

#include <string>

#include "proto/report.pb.h"

namespace memreplay {

// Returns one line for each finding, errors first.
std::string RenderLintText(const proto::Lint& lint);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_TEXT_RENDER_LINT_H_

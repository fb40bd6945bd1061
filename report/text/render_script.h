// Renders what `memreplay fit script` and `sweep script` found as text.
#ifndef MEMREPLAY_REPORT_TEXT_RENDER_SCRIPT_H_
#define MEMREPLAY_REPORT_TEXT_RENDER_SCRIPT_H_

#include <string>

#include "proto/record.pb.h"

namespace memreplay {

std::string RenderScriptFit(const proto::ScriptReport& report);
std::string RenderScriptSweep(const proto::ScriptReport& report);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_TEXT_RENDER_SCRIPT_H_

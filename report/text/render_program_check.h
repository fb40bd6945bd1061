// Renders what a schedule requests as a whole, as text and as JSON.
#ifndef MEMREPLAY_REPORT_TEXT_RENDER_PROGRAM_CHECK_H_
#define MEMREPLAY_REPORT_TEXT_RENDER_PROGRAM_CHECK_H_

#include <string>

#include "proto/schedule.pb.h"

namespace memreplay {

std::string RenderProgramCheck(const proto::ProgramCheck& check);
// Renders JSON. Names of phases may be any bytes; JSON shows them as text.
std::string RenderProgramCheckJson(proto::ProgramCheck check);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_TEXT_RENDER_PROGRAM_CHECK_H_

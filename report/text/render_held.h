#ifndef MEMREPLAY_REPORT_TEXT_RENDER_HELD_H_
#define MEMREPLAY_REPORT_TEXT_RENDER_HELD_H_

#include <string>
#include <string_view>

#include "proto/report.pb.h"

namespace memreplay {

// Appends a section of what was live, under `title`; does nothing if no stack is known.
void RenderHeld(const proto::Held& held, std::string_view title, std::string* out);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_TEXT_RENDER_HELD_H_

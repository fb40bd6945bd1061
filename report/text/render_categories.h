// Renders categories as text: the table by phase, the evidence, the tree of modules.
#ifndef MEMREPLAY_REPORT_TEXT_RENDER_CATEGORIES_H_
#define MEMREPLAY_REPORT_TEXT_RENDER_CATEGORIES_H_

#include <string>

#include "proto/report.pb.h"

namespace memreplay {

// Returns "" if nothing was ever live, or if nothing is known about it.
std::string RenderCategories(const proto::Categories& categories);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_TEXT_RENDER_CATEGORIES_H_

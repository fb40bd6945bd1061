// Categories as text: the table by phase, how they are known, the tree of modules.
#ifndef MEMREPLAY_REPORT_TEXT_RENDER_CATEGORIES_H_
#define MEMREPLAY_REPORT_TEXT_RENDER_CATEGORIES_H_

#include <string>

#include "proto/report.pb.h"

namespace memreplay {

// "" where nothing was ever live, or nothing is known of it.
std::string RenderCategories(const proto::Categories& categories);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_TEXT_RENDER_CATEGORIES_H_

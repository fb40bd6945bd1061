// Renders the largest batch (or sequence, or number of layers) that fits, with what was tried.
#ifndef MEMREPLAY_REPORT_TEXT_RENDER_LARGEST_FIT_H_
#define MEMREPLAY_REPORT_TEXT_RENDER_LARGEST_FIT_H_

#include <string>

#include "proto/report.pb.h"

namespace memreplay {

// Renders a report of LargestFitReport().
std::string RenderLargestFit(const proto::Report& report);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_TEXT_RENDER_LARGEST_FIT_H_

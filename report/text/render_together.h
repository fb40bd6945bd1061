// Renders which settings suit all recordings of a job.
#ifndef MEMREPLAY_REPORT_TEXT_RENDER_TOGETHER_H_
#define MEMREPLAY_REPORT_TEXT_RENDER_TOGETHER_H_

#include <cstddef>
#include <string>

#include "proto/report.pb.h"

namespace memreplay {

// Renders the answer of CompareTogether() with its first `shown` settings.
std::string RenderTogether(const proto::Together& together, size_t shown);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_TEXT_RENDER_TOGETHER_H_

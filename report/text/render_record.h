// What `memreplay record` did, as text.
#ifndef MEMREPLAY_REPORT_TEXT_RENDER_RECORD_H_
#define MEMREPLAY_REPORT_TEXT_RENDER_RECORD_H_

#include <string>

#include "proto/record.pb.h"

namespace memreplay {

std::string RenderRecord(const proto::RecordReport& report);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_TEXT_RENDER_RECORD_H_

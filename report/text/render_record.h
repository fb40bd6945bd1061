// Renders what `memreplay record` did as text.
#ifndef MEMREPLAY_REPORT_TEXT_RENDER_RECORD_H_
#define MEMREPLAY_REPORT_TEXT_RENDER_RECORD_H_

#include "proto/record.pb.h"
#include "report/words/lines.h"

namespace memreplay {

Text RenderRecord(const proto::RecordReport& report);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_TEXT_RENDER_RECORD_H_

// The answers of sweep and fit -> text. Called by RenderText().
#ifndef MEMREPLAY_REPORT_TEXT_RENDER_SWEEP_H_
#define MEMREPLAY_REPORT_TEXT_RENDER_SWEEP_H_

#include <string>

#include "proto/report.pb.h"
#include "report/words/lines.h"

namespace memreplay {

// All that is to be said of one device.
Text RenderSweep(const proto::DeviceReport& device);
Text RenderFits(const proto::DeviceReport& device);

// Why settings reserve so much, in a sentence; "" where little is unused.
std::string CauseSentence(const proto::SweepRow& row);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_TEXT_RENDER_SWEEP_H_

// Renders the answers of sweep and fit as text. RenderText() calls it.
#ifndef MEMREPLAY_REPORT_TEXT_RENDER_SWEEP_H_
#define MEMREPLAY_REPORT_TEXT_RENDER_SWEEP_H_

#include <string>

#include "proto/report.pb.h"
#include "report/words/lines.h"

namespace memreplay {

// Render everything to be said about one device.
Text RenderSweep(const proto::DeviceReport& device);
Text RenderFits(const proto::DeviceReport& device);

// Returns why settings reserve so much, in a sentence; "" if little is unused.
std::string CauseSentence(const proto::SweepRow& row);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_TEXT_RENDER_SWEEP_H_

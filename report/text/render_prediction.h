// Renders what a training run would need: by category at the peak, and by phase.
#ifndef MEMREPLAY_REPORT_TEXT_RENDER_PREDICTION_H_
#define MEMREPLAY_REPORT_TEXT_RENDER_PREDICTION_H_

#include <string>

#include "proto/report.pb.h"

namespace memreplay {

// Renders a report of PredictionReport().
std::string RenderPrediction(const proto::Report& report);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_TEXT_RENDER_PREDICTION_H_

// The largest batch (or sequence, or number of layers) that fits a card.
#ifndef MEMREPLAY_REPORT_ASK_LARGEST_FIT_H_
#define MEMREPLAY_REPORT_ASK_LARGEST_FIT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/report.pb.h"
#include "sim/recording/replay_settings.h"
#include "trace/synth/models.h"
#include "trace/value/units.h"

namespace memreplay {

struct LargestFitQuestion {
  std::string model;
  std::string key;  // what is asked for: "batch_size"
  // The run with that value. Any thread.
  std::function<absl::StatusOr<synth::TrainingRun>(int64_t value)> make_run;
  std::vector<std::string> confs;  // none: the defaults and expandable segments
  SettingsRequest settings;        // without capacity: the program's
  Bytes cuda_context;
};

// Errors: of make_run(1); a release that is not known; no capacity anywhere.
absl::StatusOr<proto::Report> AskLargestFit(const LargestFitQuestion& question);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_ASK_LARGEST_FIT_H_

// memreplay fit MODEL --KEY=? and fit PROGRAM --set NAME=?
#ifndef MEMREPLAY_CLI_FIT_MODEL_H_
#define MEMREPLAY_CLI_FIT_MODEL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/inputs.h"
#include "proto/report.pb.h"
#include "sim/recording/replay_settings.h"
#include "trace/value/units.h"

namespace memreplay {

struct FitModelOptions {
  std::vector<std::string> confs;  // none: the defaults and expandable segments
  SettingsRequest settings;        // with a capacity
  Bytes cuda_context;
};

// Finds the largest value of the unknown key of `inputs`. Errors: those of the run
// and of the settings.
absl::StatusOr<proto::Report> FitModel(const Inputs& inputs, const FitModelOptions& options);

}  // namespace memreplay

#endif  // MEMREPLAY_CLI_FIT_MODEL_H_

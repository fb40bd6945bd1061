// The models whose training runs can be written as schedules, by name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "synth/config_keys.h"
#include "trace/value/trace.h"

namespace memreplay::synth {

// A training run of a model as a schedule.
struct TrainingRun {
  Trace program;
  int64_t parameters = 0;
  std::string torch_version;
};

// A model that `memreplay synth` can run.
struct ModelKind {
  std::string_view name;  // "nanogpt"
  std::vector<KeyInfo> (*keys)();
  // Returns the advice for a key that does not exist but that users expect; empty if there is none.
  std::string_view (*hint)(std::string_view key);
  // Creates a run from settings, where later ones override earlier ones. Error: InvalidArgument for
  // an unknown key, a value of another type or sizes that the model rejects.
  absl::StatusOr<TrainingRun> (*make)(absl::Span<const Setting> settings);
};

absl::Span<const ModelKind> ModelKinds();
const ModelKind* FindModel(std::string_view name);  // null: there is none

}  // namespace memreplay::synth

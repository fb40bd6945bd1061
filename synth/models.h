// The models whose training runs can be written down, by name.
#ifndef MEMREPLAY_SYNTH_MODELS_H_
#define MEMREPLAY_SYNTH_MODELS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "synth/config_keys.h"
#include "trace/value/trace.h"

namespace memreplay::synth {

// A run of a model as a schedule.
struct TrainingRun {
  Trace program;
  int64_t parameters = 0;
  std::string torch_version;
};

// A model that `memreplay synth` knows.
struct ModelKind {
  std::string_view name;  // "nanogpt"
  std::vector<KeyInfo> (*keys)();
  // What to do instead of a key that does not exist but is believed in; else empty.
  std::string_view (*hint)(std::string_view key);
  // Settings in order, later ones override. Errors: InvalidArgument: an unknown
  // key, a value of another type, sizes that the model refuses.
  absl::StatusOr<TrainingRun> (*make)(absl::Span<const Setting> settings);
};

absl::Span<const ModelKind> ModelKinds();
const ModelKind* FindModel(std::string_view name);  // null: there is none

}  // namespace memreplay::synth

#endif  // MEMREPLAY_SYNTH_MODELS_H_

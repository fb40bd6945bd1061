#include "synth/llama.h"

#include <memory>

#include "synth/llama_model.h"
#include "synth/training.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay::synth {

absl::StatusOr<Trace> LlamaProgram(const LlamaConfig& config) {
  RETURN_IF_ERROR(Validate(config));
  const auto make = [&config](Session& s) { return std::make_unique<Llama>(s, config); };
  return TrainingProgram(
      config, config.seq_len, make,
      StrCat("{\"config\":", ToJson(config), ",\"meta\":{\"generator\":\"llama\"}}"));
}

}  // namespace memreplay::synth

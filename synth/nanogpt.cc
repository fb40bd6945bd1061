#include "synth/nanogpt.h"

#include <memory>

#include "synth/nanogpt_compiled.h"
#include "synth/nanogpt_model.h"
#include "synth/training.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay::synth {

absl::StatusOr<Trace> NanoGptProgram(const NanoGptConfig& config) {
  RETURN_IF_ERROR(Validate(config));
  const auto make = [&config](Session& s) -> std::unique_ptr<Model> {
    if (config.compile) return std::make_unique<CompiledNanoGpt>(s, config);
    return std::make_unique<NanoGpt>(s, config);
  };
  return TrainingProgram(
      config, config.block_size, make,
      StrCat("{\"config\":", ToJson(config), ",\"meta\":{\"generator\":\"nanogpt\"}}"));
}

}  // namespace memreplay::synth

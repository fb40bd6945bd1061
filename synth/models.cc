#include "synth/models.h"

#include <memory>
#include <utility>

#include "synth/llama.h"
#include "synth/nanogpt.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay::synth {
namespace {

template <typename Config, absl::StatusOr<Trace> (*kProgram)(const Config&)>
absl::StatusOr<TrainingRun> Make(absl::Span<const Setting> settings) {
  Config config;
  for (const Setting& setting : settings) {
    RETURN_IF_ERROR(ApplySetting(setting, &config));
  }
  ASSIGN_OR_RETURN(Trace program, kProgram(config));
  return TrainingRun{std::move(program), config.parameter_count(), config.torch_version};
}

constexpr ModelKind kModelKinds[] = {
    {"nanogpt", NanoGptKeys, NanoGptHint, Make<NanoGptConfig, NanoGptProgram>},
    {"llama", LlamaKeys, LlamaHint, Make<LlamaConfig, LlamaProgram>},
};

}  // namespace

absl::Span<const ModelKind> ModelKinds() { return kModelKinds; }

const ModelKind* FindModel(std::string_view name) {
  for (const ModelKind& model : kModelKinds) {
    if (model.name == name) return &model;
  }
  return nullptr;
}

}  // namespace memreplay::synth

#include "synth/models.h"

#include <utility>

#include "synth/llama.h"
#include "synth/nanogpt.h"
#include "trace/value/status_macros.h"

namespace memreplay::synth {
namespace {

template <typename Config>
absl::StatusOr<TrainingRun> Make(absl::Span<const Setting> settings) {
  Config config;
  for (const Setting& setting : settings) {
    RETURN_IF_ERROR(ApplySetting(setting, &config));
  }
  ASSIGN_OR_RETURN(Trace program, Program(config));
  return TrainingRun{std::move(program), config.parameter_count(), config.torch_version};
}

template <typename Config>
constexpr ModelKind KindOf(std::string_view name) {
  return {name, DescribeKeys<Config>,
          [](std::string_view key) { return FindHint(KeysOf<Config>().hints, key); }, Make<Config>};
}

constexpr ModelKind kModelKinds[] = {KindOf<NanoGptConfig>("nanogpt"),
                                     KindOf<LlamaConfig>("llama")};

}  // namespace

absl::Span<const ModelKind> ModelKinds() { return kModelKinds; }

const ModelKind* FindModel(std::string_view name) {
  for (const ModelKind& model : kModelKinds) {
    if (model.name == name) return &model;
  }
  return nullptr;
}

}  // namespace memreplay::synth

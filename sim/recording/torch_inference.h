// Which PyTorch release wrote a file, told from what its snapshot has and lacks.
#ifndef MEMREPLAY_SIM_RECORDING_TORCH_INFERENCE_H_
#define MEMREPLAY_SIM_RECORDING_TORCH_INFERENCE_H_

#include <string>
#include <vector>

#include "sim/settings/torch_profile.h"
#include "trace/value/trace.h"

namespace memreplay {

struct TorchInference {
  const TorchProfile* profile = nullptr;
  std::vector<const TorchProfile*> fitting;  // all that fit, oldest first; empty: none does
  std::string layout;                        // "layout of 2.5 to 2.7 (...)"
  // "layout of 2.5 to 2.7 (external_annotations, no compile_context); taken as 2.7"
  std::string why;
};

// Narrows the releases down by the keys that the file has and lacks, and by the
// keys of its settings string. Of several that fit, the newest. A file that fits none (edited, or
// made by another tool) is taken as the release that its newest key asks for; one that says
// nothing, as the default.
TorchInference InferTorchProfile(const Trace& trace);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_RECORDING_TORCH_INFERENCE_H_

// Used where no CUDA toolkit was found when this binary was built.
#include "absl/status/status.h"
#include "cli/commands/gpu_card.h"

namespace memreplay {

absl::StatusOr<std::unique_ptr<GpuCard>> OpenGpuCard(int /*ordinal*/) {
  return absl::FailedPreconditionError(
      "this memreplay was built without a CUDA toolkit and cannot use a GPU; see docs/gpu.md");
}

}  // namespace memreplay

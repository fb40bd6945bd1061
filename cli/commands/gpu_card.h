// Opens the GPU that `memreplay gpu` runs on. The command also builds where there is no CUDA
// toolkit; there, no GPU can be opened.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "report/ask/gpu.h"

namespace memreplay {

// Errors: no driver, no GPU, no such GPU, no toolkit when this was built.
absl::StatusOr<std::unique_ptr<GpuCard>> OpenGpuCard(int ordinal);

}  // namespace memreplay

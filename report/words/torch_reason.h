// Words why a PyTorch release was chosen.
#pragma once

#include <string>

#include "proto/report.pb.h"

namespace memreplay {

// Returns "given" or "inferred: layout of 2.5 to 2.7 (external_annotations, no compile_context);
// assumed to be 2.7". Does not read `why` itself.
std::string TorchReason(const proto::TorchProfileChoice& torch);

}  // namespace memreplay

// Words why a PyTorch release was chosen.
#ifndef MEMREPLAY_REPORT_WORDS_TORCH_REASON_H_
#define MEMREPLAY_REPORT_WORDS_TORCH_REASON_H_

#include <string>

#include "proto/report.pb.h"

namespace memreplay {

// Returns "given" or "inferred: layout of 2.5 to 2.7 (external_annotations, no compile_context);
// assumed to be 2.7". Does not read `why` itself.
std::string TorchReason(const proto::TorchProfileChoice& torch);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_WORDS_TORCH_REASON_H_

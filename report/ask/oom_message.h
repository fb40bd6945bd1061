// PyTorch's OutOfMemoryError, read from its text.
#ifndef MEMREPLAY_REPORT_ASK_OOM_MESSAGE_H_
#define MEMREPLAY_REPORT_ASK_OOM_MESSAGE_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "proto/report.pb.h"
#include "sim/oom/oom_verdict.h"

namespace memreplay {

struct OomMessageNumbers {
  OomNumbers numbers;
  int device = 0;
  // Free bytes of private pools, as printed ("allocated in private pools").
  std::optional<Bytes> private_pools;
  std::optional<Bytes> in_use_by_process;  // with what is not PyTorch's
  std::string layout;                      // "2.0", "2.1-2.3", "2.4 and later" ...
};

// Finds the message in `text` (a log, a traceback; line breaks inside it do not
// matter; the last one if there are several). Sizes are printed with two
// decimals, so that sums are good to 1 % of a unit. Error: InvalidArgument
// saying which number is missing.
absl::StatusOr<OomMessageNumbers> ParseOomMessage(std::string_view text);

// The report of `memreplay oom --message`: the arithmetic verdict.
proto::Report OomMessageReport(const OomMessageNumbers& message);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_ASK_OOM_MESSAGE_H_

// Explains an error text or a log.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "proto/report.pb.h"
#include "report/message/facts.h"
#include "report/message/log_scan.h"

namespace memreplay {

// Explains the last failure in what `scan` was fed. O(1) in the log, which is already read. Error:
// InvalidArgument if nothing in it is about memory.
absl::StatusOr<proto::Report> Explain(LogScan* scan);
// Does the same for a text in memory.
absl::StatusOr<proto::Report> ExplainText(std::string_view text);
// Explains what was read of a failure.
proto::Explanation ExplainFacts(const Facts& facts);

}  // namespace memreplay

// Explains an error text or a log, and why a recorded script ended.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "proto/record.pb.h"
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

// Sets the `refusal` of a report and of its processes: the error about GPU memory that ended a
// process or, if the script failed without a request of PyTorch's being refused, the line that it
// printed about that; and explains the first such error of a process. A server measures memory and
// ends itself before any request fails. `printed` was fed what the script printed.
void AddRefusals(LogScan* printed, proto::RecordReport* report);

}  // namespace memreplay

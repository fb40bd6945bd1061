// An error text or a log, explained.
#ifndef MEMREPLAY_REPORT_MESSAGE_EXPLAIN_H_
#define MEMREPLAY_REPORT_MESSAGE_EXPLAIN_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "proto/report.pb.h"
#include "report/message/log_scan.h"

namespace memreplay {

// The last failure of what `scan` was fed. O(1) of the log, which is read already. Error:
// InvalidArgument if nothing in it is about memory.
absl::StatusOr<proto::Report> Explain(LogScan* scan);
// The same of a text in memory.
absl::StatusOr<proto::Report> ExplainText(std::string_view text);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_MESSAGE_EXPLAIN_H_

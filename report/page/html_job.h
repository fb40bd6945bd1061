// Several ranks of a job on one page: a row for each, with its memory over time.
#ifndef MEMREPLAY_REPORT_PAGE_HTML_JOB_H_
#define MEMREPLAY_REPORT_PAGE_HTML_JOB_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "proto/report.pb.h"

namespace memreplay {

// A row for each of `devices`, which are those of the job's rows in order; all
// drawn at one scale. The odd one and the worst are marked.
std::string JobTable(const proto::Job& job, absl::Span<const proto::DeviceReport* const> devices);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_PAGE_HTML_JOB_H_

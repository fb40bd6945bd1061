// Shows on the page why memory ran out: the verdict, where the bytes are, what would have helped,
// and what pins the free memory, linked into the charts.
#ifndef MEMREPLAY_REPORT_PAGE_HTML_OOM_H_
#define MEMREPLAY_REPORT_PAGE_HTML_OOM_H_

#include <string>

#include "proto/report.pb.h"

namespace memreplay {

// Returns "Fragmentation: ..."; "" if memory does not run out.
std::string OomHeadline(const proto::OutOfMemory& oom);
// Returns the tables, with the changes of the script that would have served the request; ""
// likewise.
std::string OomTables(const proto::DeviceReport& device);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_PAGE_HTML_OOM_H_

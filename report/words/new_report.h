// Starts every report.
#pragma once

#include <string>
#include <string_view>

#include "proto/report.pb.h"
#include "report/words/version.h"

namespace memreplay {

// Sets the versions of the schema and of memreplay. `Report` is a proto::Report or one of the
// messages of proto/record.proto that replace one.
template <typename Report>
void SetVersions(Report* report) {
  report->set_schema_version(kReportSchemaVersion);
  report->set_tool_version(kVersion);
}

// Returns a report of `command` without an answer.
inline proto::Report NewReport(std::string_view command) {
  proto::Report report;
  SetVersions(&report);
  report.set_command(std::string(command));
  return report;
}

}  // namespace memreplay

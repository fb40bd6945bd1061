#include "cli/report_each.h"

#include <algorithm>

#include "cli/command.h"
#include "cli/output.h"
#include "report/build_report.h"
#include "report/render_json.h"
#include "report/render_text.h"
#include "report/verdict.h"
#include "trace/strings.h"

namespace memreplay {

absl::StatusOr<int> ReportEach(
    std::string_view command, const std::vector<std::string>& files, ReportForm form,
    absl::FunctionRef<absl::StatusOr<proto::Report>(const std::string& file)> answer) {
  const bool several = files.size() > 1;
  int status = kExitAnswered;
  bool first = true;
  for (const std::string& file : files) {
    absl::StatusOr<proto::Report> report = answer(file);
    if (report.ok()) {
      if (HasFaults(*report)) status = std::max(status, kExitBad);
    } else {
      const std::string message(report.status().message());
      PrintError(message);
      status = kExitUnusable;
      if (!several || form != ReportForm::kJson) continue;
      report = FailedReport(command, file, message);
    }
    std::string text;
    if (form == ReportForm::kJson) {
      text = RenderJson(*report, several ? JsonLayout::kOneLine : JsonLayout::kIndented);
    } else if (form == ReportForm::kText) {
      text = StrCat(first ? "" : "\n", RenderText(*report));
      first = false;
    }
    if (const absl::Status printed = Print(text); !printed.ok()) return printed;
  }
  return status;
}

absl::Status InCommand(std::string_view command, const absl::Status& status) {
  return absl::Status(status.code(), StrCat(command, ": ", ToStd(status.message())));
}

absl::StatusOr<int> PrintHelp(std::string_view text) {
  if (const absl::Status printed = Print(text); !printed.ok()) return printed;
  return kExitAnswered;
}

}  // namespace memreplay

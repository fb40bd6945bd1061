// memreplay diff A B
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/command.h"
#include "cli/commands/help.h"
#include "cli/flags/flags.h"
#include "cli/flags/inputs.h"
#include "cli/flags/replay_flags.h"
#include "cli/io/output.h"
#include "report/ask/diff.h"
#include "report/ask/parse_json.h"
#include "report/device/device_report.h"
#include "report/text/render.h"
#include "trace/formats/open_trace.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr uint64_t kMaxReportBytes = uint64_t{1} << 30;

absl::StatusOr<DiffSide> OpenSide(const std::string& path) {
  const Progress progress(StrCat("reading ", path));
  ASSIGN_OR_RETURN(const bool is_report, StartsLikeReport(path));
  if (is_report) {
    ASSIGN_OR_RETURN(const std::string text, ReadText(path, kMaxReportBytes));
    absl::StatusOr<proto::Report> report = ParseReport(text);
    if (!report.ok()) return Within(path, report.status());
    if (!report->error().empty()) {
      return InvalidArgument(path,
                             ": the report holds an error instead of a result: ", report->error());
    }
    report->set_file(StrCat(path, " (", report->command(), " of ", report->file(), ")"));
    return DiffSide{*std::move(report), nullptr};
  }
  ASSIGN_OR_RETURN(Trace trace, OpenTrace(path));
  return SideOf(std::make_shared<const Trace>(std::move(trace)), path);
}

}  // namespace

absl::StatusOr<int> RunDiff(const CommandLine& line) {
  bool json = false;
  HeldOptions held{.top = kDiffStacks, .filter = ""};
  FlagSet flags("diff A B [flags]", kDiffHelp);
  AddHeldFlags(&held, &flags);
  flags.AddSwitch("json", &json, "print the report as JSON");
  const absl::StatusOr<std::vector<std::string>> files = flags.Parse(line.args);
  if (!files.ok()) return Within("diff", files.status());
  if (flags.help_requested()) return ShowHelp(line, flags);
  if (files->size() != 2) {
    return InvalidArgument("diff: expected A and B, found ", files->size(),
                           " arguments; see memreplay diff --help");
  }
  ASSIGN_OR_RETURN(const DiffSide a, OpenSide((*files)[0]));
  ASSIGN_OR_RETURN(const DiffSide b, OpenSide((*files)[1]));
  proto::Report report = StartReport("diff", "", Trace());
  *report.mutable_diff() = DiffReports(a, b, held);
  RETURN_IF_ERROR(PrintAnswer(report, json, [&] { return RenderDiffText(report.diff()); }));
  return kExitAnswered;
}

}  // namespace memreplay

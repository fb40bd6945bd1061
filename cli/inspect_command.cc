// memreplay inspect FILE...
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "cli/report_each.h"
#include "report/build_report.h"
#include "sim/replay_settings.h"
#include "trace/strings.h"
#include "trace/trace_reader.h"

namespace memreplay {
namespace {

constexpr char kDescription[] =
    "Tells what is in a file, without replaying it: devices, streams, pools, events,\n"
    "recorded peaks, the state at the end and its fragmentation, how complete the\n"
    "history is, the settings, which PyTorch wrote it.\n"
    "\n"
    "Exit status 1 tells of a file that contradicts itself.";

absl::StatusOr<proto::Report> InspectFile(const std::string& file, std::optional<int64_t> device) {
  const Progress progress(StrCat("reading ", file));
  const absl::StatusOr<Trace> trace = OpenTrace(file);
  if (!trace.ok()) return trace.status();
  const absl::StatusOr<ProfileChoice> torch = ChooseProfile(*trace, std::nullopt);
  if (!torch.ok()) return torch.status();
  proto::Report report = StartReport("inspect", file, *trace);
  for (size_t index = 0; index < trace->devices.size(); ++index) {
    if (device.has_value() && trace->devices[index].device != *device) continue;
    *report.add_devices() = ReportContents(*trace, index, *torch);
  }
  if (device.has_value() && report.devices().empty()) {
    return absl::NotFoundError(StrCat(file, ": holds nothing of device ", *device));
  }
  return report;
}

}  // namespace

absl::StatusOr<int> RunInspect(absl::Span<const std::string> args) {
  bool json = false;
  std::optional<int64_t> device;
  FlagSet flags("inspect FILE... [flags]", kDescription);
  flags.AddNumber("device", "N", &device, "only this device of the file");
  flags.AddSwitch("json", &json,
                  "print the report as JSON; of several files one line each, in order");
  const absl::StatusOr<std::vector<std::string>> files = flags.Parse(args);
  if (!files.ok()) return InCommand("inspect", files.status());
  if (flags.help_requested()) return PrintHelp(flags.Help());
  if (files->empty()) {
    return absl::InvalidArgumentError(
        "inspect: no FILE given; memreplay inspect --help tells more");
  }
  return ReportEach("inspect", *files, json ? ReportForm::kJson : ReportForm::kText,
                    [&](const std::string& file) { return InspectFile(file, device); });
}

}  // namespace memreplay

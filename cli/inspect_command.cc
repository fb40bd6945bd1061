// memreplay inspect FILE...
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/answer_file.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "cli/report_each.h"
#include "report/build_report.h"
#include "report/oom_report.h"
#include "sim/oom_counterfactuals.h"
#include "sim/release_evidence.h"
#include "sim/replay_settings.h"
#include "sim/stream_cost.h"
#include "trace/schedule.h"
#include "trace/strings.h"

namespace memreplay {
namespace {

constexpr char kDescription[] =
    "Tells what is in a file, without replaying it: devices, streams, pools, events,\n"
    "recorded peaks, the state at the end and its fragmentation, how complete the\n"
    "history is, the settings, which PyTorch wrote it.\n"
    "\n"
    "Exit status 1 tells of a file that contradicts itself.";

// What takes longer than reading the file.
absl::StatusOr<proto::LoopReport> LookDeeper(const std::shared_ptr<const Trace>& trace,
                                             size_t index) {
  const Schedule schedule = Schedule::Build(trace, index);
  std::optional<StreamCost> cost;
  if (schedule.is_cold() && AllocatesOnSeveralStreams(schedule)) {
    const absl::StatusOr<ReplaySettings> settings = ResolveSettingsByReplay(trace, {});
    if (!settings.ok()) return settings.status();
    const absl::StatusOr<StreamCost> measured = CostOfStreams(schedule, *settings);
    if (!measured.ok()) return measured.status();
    cost = *measured;
  }
  return ReportLoop(schedule, trace->devices[index], cost.has_value() ? &*cost : nullptr);
}

absl::StatusOr<proto::Report> InspectFile(const std::string& file, std::optional<int64_t> device,
                                          bool deep) {
  const Progress progress(StrCat("reading ", file));
  const absl::StatusOr<std::shared_ptr<const Trace>> opened = OpenShared(file);
  if (!opened.ok()) return opened.status();
  const std::shared_ptr<const Trace>& trace = *opened;
  const absl::StatusOr<ProfileChoice> torch = ChooseProfile(*trace, std::nullopt);
  if (!torch.ok()) return torch.status();
  return ReportDevices("inspect", file, *trace, device,
                       [&](size_t index) -> absl::StatusOr<proto::DeviceReport> {
                         proto::DeviceReport report = ReportContents(*trace, index, *torch);
                         if (!deep) return report;
                         absl::StatusOr<proto::LoopReport> loop = LookDeeper(trace, index);
                         if (!loop.ok()) return loop.status();
                         *report.mutable_loop() = *std::move(loop);
                         return report;
                       });
}

}  // namespace

absl::StatusOr<int> RunInspect(absl::Span<const std::string> args) {
  bool json = false;
  bool deep = false;
  std::optional<int64_t> device;
  FlagSet flags("inspect FILE... [flags]", kDescription);
  flags.AddNumber("device", "N", &device, "only this device of the file");
  flags.AddSwitch("deep", &deep,
                  "also the steps of the loop and what they leave behind, what several\n"
                  "streams cost, and what a beginning that is missing leaves uncertain");
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
                    [&](const std::string& file) { return InspectFile(file, device, deep); });
}

}  // namespace memreplay

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
#include "cli/replay_flags.h"
#include "cli/report_each.h"
#include "report/ask/categories.h"
#include "report/ask/device_report.h"
#include "report/ask/held.h"
#include "report/ask/loop.h"
#include "sim/recording/release_evidence.h"
#include "sim/recording/replay_settings.h"
#include "trace/schedule/schedule.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr char kInspectDescription[] =
    "Reports what is in a file: devices, streams, pools, events, recorded peaks, the final\n"
    "state and its fragmentation, how complete the history is, the settings, and which\n"
    "PyTorch release wrote it.\n"
    "\n"
    "The exit status is 1 if the file contradicts itself.";

absl::StatusOr<proto::Report> InspectFile(const std::string& file, std::optional<int64_t> device,
                                          bool deep, const HeldOptions& held) {
  const Progress progress(StrCat("reading ", file));
  // The inference of every other command; where its settings are none that the release takes,
  // what is in the file can still be told.
  const absl::StatusOr<std::shared_ptr<Trace>> opened = OpenShared(file);
  if (!opened.ok()) return opened.status();
  const std::shared_ptr<Trace>& trace = *opened;
  const absl::StatusOr<ReplaySettings> settings = ResolveSettingsByReplay(trace, {});
  const absl::StatusOr<ProfileChoice> torch =
      settings.ok() ? settings->torch : ChooseProfile(*trace, std::nullopt);
  if (!torch.ok()) return torch.status();
  StackNames names(*trace);
  return ReportDevices("inspect", file, *trace, device,
                       [&](size_t index) -> absl::StatusOr<proto::DeviceReport> {
                         proto::DeviceReport report = ReportContents(*trace, index, *torch);
                         if (trace->devices[index].has_final_state) {
                           *report.mutable_held_at_end() = HeldAtEnd(*trace, index, names, held);
                         }
                         if (!deep) return report;
                         if (!settings.ok()) return settings.status();
                         const Schedule schedule = Schedule::Build(trace, index);
                         const absl::Status asked = AskLoop(schedule, *settings, names, &report);
                         if (!asked.ok()) return asked;
                         *report.mutable_held_at_peak() = HeldAtPeak(schedule, names, held);
                         *report.mutable_categories() = ReportCategories(schedule, names);
                         return report;
                       });
}

}  // namespace

absl::StatusOr<int> RunInspect(absl::Span<const std::string> args) {
  bool json = false;
  bool deep = false;
  std::optional<int64_t> device;
  std::optional<int64_t> jobs;
  HeldOptions held;
  FlagSet flags("inspect FILE... [flags]", kInspectDescription);
  AddDeviceFlag(&device, &flags);
  flags.AddSwitch("deep", &deep,
                  "also replay the file: memory over time, what it is for (parameters, gradients,\n"
                  "activations ...) by phase and module, what holds it, what several streams\n"
                  "cost, the steps of the loop and what they leave behind, and error bars for\n"
                  "recordings that began late");
  AddHeldFlags(&held, &flags);
  AddJobs(&flags, &jobs);
  AddJsonFlag(&json, &flags);
  const absl::StatusOr<std::vector<std::string>> files = flags.Parse(args);
  if (!files.ok()) return InCommand("inspect", files.status());
  if (flags.help_requested()) return PrintHelp(flags.Help());
  if (files->empty()) {
    return absl::InvalidArgumentError("inspect: no FILE given; see memreplay inspect --help");
  }
  return ReportEach(
      "inspect", *files, json ? ReportForm::kJson : ReportForm::kText, jobs,
      [&](const std::string& file, size_t) { return InspectFile(file, device, deep, held); });
}

}  // namespace memreplay

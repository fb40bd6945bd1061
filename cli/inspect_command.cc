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
#include "report/answer/build_report.h"
#include "report/answer/loop_report.h"
#include "sim/recording/release_evidence.h"
#include "sim/recording/replay_settings.h"
#include "sim/whatif/look_back.h"
#include "sim/whatif/one_stream.h"
#include "sim/whatif/stream_cost.h"
#include "trace/schedule/schedule.h"
#include "trace/value/strings.h"

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
                                             size_t index, const ReplaySettings& settings,
                                             const proto::RecordedPeaks& recorded) {
  const Schedule schedule = Schedule::Build(trace, index);
  std::optional<StreamCost> cost;
  if (schedule.is_cold() && AllocatesOnSeveralStreams(schedule)) {
    const absl::StatusOr<StreamCost> measured = CostOfStreams(schedule, settings);
    if (!measured.ok()) return measured.status();
    cost = *measured;
  }
  if (schedule.requests().empty()) return ReportLoop(schedule, nullptr, nullptr, recorded);
  const absl::StatusOr<LookBack> look_back = LookBackOn(schedule, settings);
  if (!look_back.ok()) return look_back.status();
  return ReportLoop(schedule, cost.has_value() ? &*cost : nullptr, &*look_back, recorded);
}

absl::StatusOr<proto::Report> InspectFile(const std::string& file, std::optional<int64_t> device,
                                          bool deep) {
  const Progress progress(StrCat("reading ", file));
  // The inference of every other command; where its settings are none that the release takes,
  // what is in the file can still be told.
  const absl::StatusOr<std::shared_ptr<const Trace>> opened = OpenShared(file);
  if (!opened.ok()) return opened.status();
  const std::shared_ptr<const Trace>& trace = *opened;
  const absl::StatusOr<ReplaySettings> settings = ResolveSettingsByReplay(trace, {});
  const absl::StatusOr<ProfileChoice> torch =
      settings.ok() ? settings->torch : ChooseProfile(*trace, std::nullopt);
  if (!torch.ok()) return torch.status();
  return ReportDevices("inspect", file, *trace, device,
                       [&](size_t index) -> absl::StatusOr<proto::DeviceReport> {
                         proto::DeviceReport report = ReportContents(*trace, index, *torch);
                         if (!deep) return report;
                         if (!settings.ok()) return settings.status();
                         absl::StatusOr<proto::LoopReport> loop =
                             LookDeeper(trace, index, *settings, report.recorded());
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
  std::optional<int64_t> jobs;
  FlagSet flags("inspect FILE... [flags]", kDescription);
  flags.AddNumber("device", "N", &device, "only this device of the file");
  flags.AddSwitch("deep", &deep,
                  "also a replay: memory over time, who holds it, what several streams cost,\n"
                  "the steps of the loop and what they leave behind, and how far the figures\n"
                  "of a recording that began late may be off");
  AddJobs(&flags, &jobs);
  flags.AddSwitch("json", &json,
                  "print the report as JSON; of several files one line each, in order");
  const absl::StatusOr<std::vector<std::string>> files = flags.Parse(args);
  if (!files.ok()) return InCommand("inspect", files.status());
  if (flags.help_requested()) return PrintHelp(flags.Help());
  if (files->empty()) {
    return absl::InvalidArgumentError(
        "inspect: no FILE given; memreplay inspect --help tells more");
  }
  return ReportEach(
      "inspect", *files, json ? ReportForm::kJson : ReportForm::kText, jobs,
      [&](const std::string& file, size_t) { return InspectFile(file, device, deep); });
}

}  // namespace memreplay

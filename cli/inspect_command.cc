// memreplay inspect FILE...
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "cli/report_each.h"
#include "report/build_report.h"
#include "report/oom_report.h"
#include "sim/oom_counterfactuals.h"
#include "sim/replay_settings.h"
#include "sim/stream_cost.h"
#include "trace/schedule.h"
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

// What takes longer than reading the file.
absl::StatusOr<proto::LoopReport> LookDeeper(const std::shared_ptr<const Trace>& trace,
                                             size_t index) {
  const Schedule schedule = Schedule::Build(trace, index);
  std::optional<StreamCost> cost;
  if (schedule.is_cold() && AllocatesOnSeveralStreams(schedule)) {
    const absl::StatusOr<ReplaySettings> settings = ResolveSettings(*trace, {});
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
  absl::StatusOr<Trace> opened = OpenTrace(file);
  if (!opened.ok()) return opened.status();
  const auto trace = std::make_shared<const Trace>(*std::move(opened));
  const absl::StatusOr<ProfileChoice> torch = ChooseProfile(*trace, std::nullopt);
  if (!torch.ok()) return torch.status();
  proto::Report report = StartReport("inspect", file, *trace);
  for (size_t index = 0; index < trace->devices.size(); ++index) {
    if (device.has_value() && trace->devices[index].device != *device) continue;
    proto::DeviceReport& to = *report.add_devices();
    to = ReportContents(*trace, index, *torch);
    if (!deep) continue;
    absl::StatusOr<proto::LoopReport> loop = LookDeeper(trace, index);
    if (!loop.ok()) return loop.status();
    *to.mutable_loop() = *std::move(loop);
  }
  if (device.has_value() && report.devices().empty()) {
    return absl::NotFoundError(StrCat(file, ": holds nothing of device ", *device));
  }
  return report;
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

// memreplay fit FILE...
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/answer_file.h"
#include "cli/command.h"
#include "cli/current_replay.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "cli/report_each.h"
#include "report/sweep_report.h"
#include "sim/parallel.h"
#include "sim/smallest_capacity.h"
#include "trace/strings.h"

namespace memreplay {
namespace {

constexpr char kDescription[] =
    "Finds the smallest device memory on which a file survives, for each --conf, or,\n"
    "without one, for its own settings, the defaults and expandable segments. Every\n"
    "device tried is a whole replay; those next to the edge are shown.\n"
    "\n"
    "A recording that began with memory in use starts with only what was live,\n"
    "allocated anew.\n"
    "\n"
    "Exit status 1 tells of a recording that is not reproduced and of a file that\n"
    "contradicts itself.";

struct Options {
  std::vector<std::string> confs;
  SettingsRequest settings;
  std::optional<int64_t> device;
  bool json = false;
};

// Those asked for, or the usual ones; without repetition of meaning.
std::vector<FitRow> RowsFor(const ReplaySettings& settings, const Options& options,
                            std::vector<ReplaySettings>* meanings) {
  std::vector<FitRow> rows;
  std::vector<std::string> confs = options.confs;
  const bool given = !confs.empty();
  if (!given) {
    rows.push_back({{settings.config.conf, settings.fraction}, true, "", {}});
    meanings->push_back(settings);
    confs.push_back("");
    if (settings.torch.profile->expandable_segments) confs.push_back("expandable_segments:True");
  }
  for (const std::string& conf : confs) {
    FitRow row{{conf, settings.fraction}, false, "", {}};
    absl::StatusOr<ReplaySettings> meaning = SettingsFor(settings, row.candidate);
    if (!meaning.ok()) {
      row.refused = std::string(meaning.status().message());
      meaning = settings;
    } else if (!given &&
               std::any_of(meanings->begin(), meanings->end(), [&](const ReplaySettings& other) {
                 AllocatorConfig config = other.config;
                 config.conf = meaning->config.conf;
                 config.backend_loaded = meaning->config.backend_loaded;
                 return config == meaning->config;
               })) {
      continue;
    }
    rows.push_back(std::move(row));
    meanings->push_back(*std::move(meaning));
  }
  return rows;
}

absl::StatusOr<proto::DeviceReport> FitDevice(std::shared_ptr<const Trace> trace,
                                              size_t device_index, const ReplaySettings& settings,
                                              const Options& options) {
  const Schedule schedule = Schedule::Build(std::move(trace), device_index);
  absl::StatusOr<CurrentReplay> current = ReplayCurrent(schedule, device_index, settings);
  if (!current.ok()) return current.status();
  const std::vector<Lifetime> lifetimes = LifetimesOf(schedule);
  const PeakLive live = PeakLiveOf(lifetimes);
  const SweepContext context = {schedule, settings, &current->start, StartPolicy::kFresh,
                                std::max<size_t>(1, std::thread::hardware_concurrency())};
  std::vector<ReplaySettings> meanings;
  std::vector<FitRow> rows = RowsFor(settings, options, &meanings);
  ParallelFor(rows.size(), context.threads, [&](size_t i) {
    if (!rows[i].refused.empty()) return;
    rows[i].found = FindSmallestCapacity(context, meanings[i], live.requested);
  });
  AddFits(rows, live, BestPacking(lifetimes), &current->report);
  return std::move(current->report);
}

absl::StatusOr<proto::Report> FitFile(const std::string& file, const Options& options) {
  Progress progress(StrCat("reading ", file));
  const absl::StatusOr<OpenedFile> opened = OpenWithSettings(file, options.settings);
  if (!opened.ok()) return opened.status();
  progress.SetActivity(StrCat("fitting ", file));
  absl::StatusOr<proto::Report> report = ReportDevices(
      "fit", file, *opened->trace, options.device,
      [&](size_t index) { return FitDevice(opened->trace, index, opened->settings, options); });
  if (report.ok()) LiftSweep(&*report);
  return report;
}

}  // namespace

absl::StatusOr<int> RunFit(absl::Span<const std::string> args) {
  Options options;
  FlagSet flags("fit FILE... [flags]", kDescription);
  flags.AddTexts("conf", "CONF", &options.confs, "settings; may be given several times");
  flags.AddOptionalText("torch", "VERSION", &options.settings.torch,
                        "PyTorch release whose allocator to model");
  flags.AddFraction("fraction", &options.settings.fraction,
                    "share of the device that PyTorch may use, 0 to 1");
  flags.AddNumber("device", "N", &options.device, "only this device of the file");
  flags.AddSwitch("json", &options.json,
                  "print the report as JSON; of several files one line each, in order");
  const absl::StatusOr<std::vector<std::string>> files = flags.Parse(args);
  if (!files.ok()) return InCommand("fit", files.status());
  if (flags.help_requested()) return PrintHelp(flags.Help());
  if (files->empty()) {
    return absl::InvalidArgumentError("fit: no FILE given; memreplay fit --help tells more");
  }
  return ReportEach("fit", *files, options.json ? ReportForm::kJson : ReportForm::kText,
                    [&](const std::string& file) { return FitFile(file, options); });
}

}  // namespace memreplay

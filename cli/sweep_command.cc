// memreplay sweep FILE...
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/answer_file.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/inputs.h"
#include "cli/output.h"
#include "cli/read_text.h"
#include "cli/replay_flags.h"
#include "cli/report_each.h"
#include "report/ask/device_report.h"
#include "report/ask/driver_costs.h"
#include "report/ask/sweep.h"
#include "report/ask/together.h"
#include "report/text/render_together.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr uint64_t kLongestCosts = uint64_t{16} << 20;
constexpr char kSweepDescription[] =
    "Replays a file under many settings and ranks them: those that survive first, then by\n"
    "peak reserved memory, retries and driver calls. Without --conf it searches the settings\n"
    "that the PyTorch release accepts and prints the best few as lines to paste.\n"
    "\n"
    "First it replays the file under its own settings and reports how closely that agrees\n"
    "with the recording.\n"
    "\n"
    "sweep script runs a PyTorch script on simulated GPUs; see sweep script --help.\n"
    "\n"
    "The exit status is 1 if the recording is not reproduced, memory runs out under every\n"
    "setting, or the file contradicts itself.";

struct SweepFlags {
  std::vector<std::string> confs;
  SettingsRequest settings;
  std::optional<int64_t> device;
  std::optional<int64_t> top;
  std::string start = "recorded";
  std::optional<std::string> costs_file;
  std::optional<DriverCosts> costs;  // what the file says
  std::optional<int64_t> jobs;
  bool together = false;
  bool json = false;
};

absl::StatusOr<DriverCosts> ReadCosts(const std::string& file) {
  const absl::StatusOr<std::string> text = ReadText(file, kLongestCosts);
  if (!text.ok()) return text.status();
  absl::StatusOr<DriverCosts> costs = ParseDriverCosts(*text);
  return costs.ok() ? std::move(costs) : InCommand(file, costs.status());
}

absl::StatusOr<proto::Report> SweepFile(const std::string& file, const Inputs& inputs,
                                        const SweepFlags& options, size_t threads) {
  Progress progress(StrCat("reading ", file));
  const absl::StatusOr<OpenedFile> opened = inputs.Open(file, options.settings);
  if (!opened.ok()) return opened.status();
  progress.SetActivity(StrCat("sweeping ", file));
  SweepQuestion question;
  question.confs = options.confs;
  if (options.start == "fresh") question.start = StartPolicy::kFresh;
  if (options.costs.has_value()) question.costs = &*options.costs;
  if (options.top.has_value()) question.shown = static_cast<size_t>(*options.top);
  question.threads = threads;
  question.progress = &progress;
  absl::StatusOr<proto::Report> report =
      ReportDevices("sweep", file, *opened->trace, options.device, [&](size_t index) {
        return AskSweep(Schedule::Build(opened->trace, index), opened->settings, question);
      });
  if (report.ok()) LiftSweep(&*report);
  return report;
}

// Each file by itself, then all with what suits some of them.
absl::StatusOr<int> SweepTogether(const std::vector<std::string>& paths, const Inputs& inputs,
                                  SweepFlags options) {
  const absl::StatusOr<std::vector<std::string>> files = ExpandDirectories(paths);
  if (!files.ok()) return files.status();
  const auto sweep = [&](const std::string& file, size_t threads) {
    return SweepFile(file, inputs, options, threads);
  };
  const absl::StatusOr<std::vector<proto::Report>> alone =
      CollectReports("sweep", *files, options.jobs, sweep);
  if (!alone.ok()) return alone.status();
  if (options.confs.empty()) options.confs = CommonCandidates(*alone);
  const absl::StatusOr<std::vector<proto::Report>> together =
      CollectReports("sweep", *files, options.jobs, sweep);
  if (!together.ok()) return together.status();

  proto::Report report = FailedReport("sweep", "", "");
  *report.mutable_together() = CompareTogether(*alone, *together);
  const proto::Together& answer = report.together();
  for (const proto::Report& file : *alone) {
    if (!file.error().empty()) PrintError(file.error());
  }
  const absl::Status printed = PrintAnswer(report, options.json, [&] {
    return RenderTogether(answer, static_cast<size_t>(options.top.value_or(10)));
  });
  if (!printed.ok()) return printed;
  if (answer.failed() > 0) return kExitUnusable;
  return !answer.rows().empty() && answer.rows(0).ooms() == 0 ? kExitAnswered : kExitBad;
}

}  // namespace

absl::StatusOr<int> RunSweep(absl::Span<const std::string> args) {
  if (!args.empty() && args[0] == "script") return RunSweepScript(args.subspan(1));
  SweepFlags options;
  FlagSet flags("sweep FILE...|MODEL [flags]", kSweepDescription);
  AddConfsFlag(&flags, &options.confs,
               "settings to try instead of a search; may be given several times");
  AddSettingsFlags(&options.settings, &flags);
  AddStartFlag(&options.start, &flags);
  AddDeviceFlag(&options.device, &flags);
  flags.AddNumber("top", "N", &options.top,
                  "how many of the ranked settings to print (default: 10)");
  flags.AddOptionalText(
      "costs", "FILE", &options.costs_file,
      "the cost of driver calls, as written by memreplay gpu --costs-out; adds a\n"
      "column with the time of each row's calls");
  flags.AddSwitch("together", &options.together,
                  "find the settings that suit all FILEs at once, such as the ranks of a job");
  AddJobs(&flags, &options.jobs);
  AddJsonFlag(&options.json, &flags);
  absl::StatusOr<Inputs> inputs = Inputs::Split(args);
  if (!inputs.ok()) return InCommand("sweep", inputs.status());
  absl::StatusOr<std::vector<std::string>> names = flags.Parse(inputs->args());
  if (!names.ok()) return InCommand("sweep", names.status());
  if (flags.help_requested()) return PrintHelp(flags.Help());
  if (const absl::Status set = inputs->SetNames(*std::move(names)); !set.ok()) {
    return InCommand("sweep", set);
  }
  const std::vector<std::string>& files = inputs->files();
  if (files.empty()) {
    return absl::InvalidArgumentError("sweep: no FILE given; see memreplay sweep --help");
  }
  if (options.top.has_value() && *options.top < 1) {
    return absl::InvalidArgumentError(
        StrCat("sweep: --top: expected at least 1, found ", *options.top));
  }
  if (options.costs_file.has_value()) {
    absl::StatusOr<DriverCosts> costs = ReadCosts(*options.costs_file);
    if (!costs.ok()) return InCommand("sweep: --costs", costs.status());
    options.costs = *std::move(costs);
  }
  const ReportForm form = options.json ? ReportForm::kJson : ReportForm::kText;
  if (options.together) return SweepTogether(files, *inputs, options);
  return ReportEach("sweep", files, form, options.jobs,
                    [&](const std::string& file, size_t threads) {
                      return SweepFile(file, *inputs, options, threads);
                    });
}

}  // namespace memreplay

// memreplay sweep FILE...
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/file_command.h"
#include "cli/flags.h"
#include "cli/inputs.h"
#include "cli/output.h"
#include "cli/read_text.h"
#include "cli/replay_flags.h"
#include "report/ask/device_report.h"
#include "report/ask/driver_costs.h"
#include "report/ask/sweep.h"
#include "report/ask/together.h"
#include "report/text/render_together.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr uint64_t kMaxCostsBytes = uint64_t{16} << 20;
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
  FileFlags file;
  std::vector<std::string> confs;
  std::optional<int64_t> top;
  std::string start;
  std::optional<std::string> costs_file;
  std::optional<DriverCosts> costs;  // what the file says
  bool together = false;
};

absl::StatusOr<DriverCosts> ReadCosts(const std::string& file) {
  const absl::StatusOr<std::string> text = ReadText(file, kMaxCostsBytes);
  if (!text.ok()) return text.status();
  absl::StatusOr<DriverCosts> costs = ParseDriverCosts(*text);
  return costs.ok() ? std::move(costs) : InCommand(file, costs.status());
}

absl::StatusOr<proto::DeviceReport> SweepDevice(const Study& study, const FileRun& run,
                                                const SweepFlags& options) {
  run.progress.SetActivity(StrCat("sweeping ", run.file));
  SweepQuestion question;
  question.confs = options.confs;
  // Which settings suit a script is asked of a process that starts anew: what a recording found
  // cached when it began was reserved under the settings of the time.
  const bool is_anew = options.start.empty() && options.confs.empty() &&
                       !study.schedule().is_cold() && !study.schedule().is_program();
  if (options.start == "fresh" || is_anew) question.start = StartPolicy::kFresh;
  if (options.costs.has_value()) question.costs = &*options.costs;
  if (options.top.has_value()) question.shown = static_cast<size_t>(*options.top);
  question.threads = run.threads;
  question.progress = &run.progress;
  return AskSweep(study, question);
}

// Each file by itself, then with what suits others and was not tried on it.
absl::StatusOr<int> SweepTogether(const Inputs& inputs, const SweepFlags& options) {
  const absl::StatusOr<std::vector<std::string>> files = ExpandDirectories(inputs.files());
  if (!files.ok()) return files.status();
  const auto sweep = [&](const std::vector<std::string>& paths, const SweepFlags& flags) {
    return CollectReports("sweep", paths, flags.file.jobs,
                          [&](const std::string& file, size_t threads) {
                            return AnswerFile("sweep", file, inputs, flags.file, threads,
                                              [&](const Study& study, const FileRun& run) {
                                                return SweepDevice(study, run, flags);
                                              });
                          });
  };
  const absl::StatusOr<std::vector<proto::Report>> alone = sweep(*files, options);
  if (!alone.ok()) return alone.status();
  std::vector<proto::Report> together = *alone;
  if (options.confs.empty()) {
    SweepFlags rest = options;
    rest.confs = CommonCandidates(*alone);
    std::vector<std::string> lacking;
    for (size_t i = 0; i < files->size(); ++i) {
      if (!TakeRows((*alone)[i], rest.confs, &together[i])) lacking.push_back((*files)[i]);
    }
    absl::StatusOr<std::vector<proto::Report>> others = sweep(lacking, rest);
    if (!others.ok()) return others.status();
    for (size_t i = 0, next = 0; i < files->size() && next < lacking.size(); ++i) {
      if ((*files)[i] == lacking[next]) together[i] = std::move((*others)[next++]);
    }
  }

  proto::Report report = FailedReport("sweep", "", "");
  *report.mutable_together() = CompareTogether(*alone, together);
  const proto::Together& answer = report.together();
  std::set<std::string> errors;  // a file that is named twice is reported once
  for (const proto::Report& file : *alone) {
    if (!file.error().empty() && errors.insert(file.error()).second) PrintError(file.error());
  }
  const absl::Status printed = PrintAnswer(report, options.file.json, [&] {
    return RenderTogether(answer, static_cast<size_t>(options.top.value_or(10)));
  });
  if (!printed.ok()) return printed;
  if (answer.failed() > 0) return kExitUnusable;
  return !answer.rows().empty() && answer.rows(0).ooms() == 0 ? kExitAnswered : kExitBad;
}

}  // namespace

absl::StatusOr<int> RunSweep(const CommandLine& line) {
  if (!line.args.empty() && line.args[0] == "script") return RunSweepScript(line.From(1));
  SweepFlags options;
  FlagSet flags("sweep FILE...|MODEL [flags]", kSweepDescription);
  AddConfsFlag(&flags, &options.confs,
               "settings to try instead of a search; may be given several times");
  AddSettingsFlags(&options.file.settings, &flags);
  AddStartFlag(&options.start, &flags);
  AddDeviceFlag(&options.file.device, &flags);
  flags.AddNumber("top", "N", &options.top,
                  "how many of the ranked settings to print (default: 10)");
  flags.AddOptionalText(
      "costs", "FILE", &options.costs_file,
      "the cost of driver calls, as written by memreplay gpu --costs-out; adds a\n"
      "column with the time of each row's calls");
  flags.AddSwitch("together", &options.together,
                  "find the settings that suit all FILEs at once, such as the ranks of a job");
  AddFileFlags(&options.file, &flags);
  const absl::StatusOr<std::optional<Inputs>> inputs = ParseInputs(line, "sweep", &flags);
  if (!inputs.ok()) return inputs.status();
  if (!inputs->has_value()) return kExitAnswered;
  if (options.top.has_value() && *options.top < 1) {
    return absl::InvalidArgumentError(
        StrCat("sweep: --top: expected at least 1, found ", *options.top));
  }
  if (options.costs_file.has_value()) {
    absl::StatusOr<DriverCosts> costs = ReadCosts(*options.costs_file);
    if (!costs.ok()) return InCommand("sweep: --costs", costs.status());
    options.costs = *std::move(costs);
  }
  if (options.together) return SweepTogether(**inputs, options);
  return AnswerFiles(
      "sweep", **inputs, options.file,
      [&](const Study& study, const FileRun& run) { return SweepDevice(study, run, options); },
      LiftSweep);
}

}  // namespace memreplay

// memreplay sweep FILE...
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_split.h"
#include "cli/commands/command.h"
#include "cli/commands/file_command.h"
#include "cli/commands/help.h"
#include "cli/flags/flags.h"
#include "cli/flags/inputs.h"
#include "cli/flags/replay_flags.h"
#include "cli/io/output.h"
#include "report/ask/job.h"
#include "report/ask/parse_json.h"
#include "report/ask/sweep.h"
#include "report/text/render.h"
#include "report/words/new_report.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr uint64_t kMaxCostsBytes = uint64_t{16} << 20;
constexpr uint64_t kMaxSweepsBytes = uint64_t{1} << 30;
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
  ASSIGN_OR_RETURN(const std::string text, ReadText(file, kMaxCostsBytes));
  absl::StatusOr<DriverCosts> costs = ParseDriverCosts(text);
  return costs.ok() ? std::move(costs) : Within(file, costs.status());
}

absl::StatusOr<proto::DeviceReport> SweepDevice(const Study& study, const FileRun& run,
                                                const SweepFlags& options) {
  run.progress.SetActivity(StrCat("sweeping ", run.file));
  SweepQuestion question;
  question.confs = options.confs;
  // Settings are compared for a process that starts anew: what was cached when a recording began
  // had been reserved under other settings.
  const bool is_anew = options.start.empty() && options.confs.empty() &&
                       !study.schedule().is_cold() && !study.schedule().is_program();
  if (options.start == "fresh" || is_anew) question.start = StartPolicy::kFresh;
  if (options.costs.has_value()) question.costs = &*options.costs;
  if (options.top.has_value()) question.shown = static_cast<size_t>(*options.top);
  question.threads = run.threads;
  question.progress = &run.progress;
  return AskSweep(study, question);
}

// Returns the answers in `path`, as sweep --json wrote them: one, or one per line. Answers about
// the same file become one.
absl::Status ReadSweeps(const std::string& path, std::vector<proto::Report>* reports) {
  ASSIGN_OR_RETURN(const std::string text, ReadText(path, kMaxSweepsBytes));
  std::vector<absl::string_view> answers = {text};
  if (text.substr(0, 2) != "{\n") answers = absl::StrSplit(text, '\n', absl::SkipWhitespace());
  for (const absl::string_view json : answers) {
    absl::StatusOr<proto::Report> report = ParseReport(ToStd(json));
    if (!report.ok()) return Within(path, report.status());
    if (report->command() != "sweep") {
      return InvalidArgument(path, ": expected answers of sweep, found one of ", report->command());
    }
    const auto same = absl::c_find_if(
        *reports, [&](const auto& known) { return known.file() == report->file(); });
    if (same == reports->end()) {
      reports->push_back(*std::move(report));
    } else {
      AddRows(*report, &*same);
    }
  }
  return absl::OkStatus();
}

// Runs each file by itself, and then with the settings that suit other files and were not tried on
// it.
absl::StatusOr<proto::Together> SweepTogether(const std::vector<std::string>& files,
                                              const Inputs& inputs, const SweepFlags& options,
                                              std::set<std::string>* errors) {
  std::vector<std::string> recordings;
  std::vector<proto::Report> reports;
  for (const std::string& file : files) {
    const absl::StatusOr<bool> is_report = StartsLikeReport(file);
    if (!is_report.ok() || !*is_report) {
      recordings.push_back(file);
    } else
      RETURN_IF_ERROR(ReadSweeps(file, &reports));
  }
  const size_t elsewhere = reports.size();
  std::map<std::string, std::vector<std::string>> confs;
  const auto sweep = [&](const std::vector<std::string>& paths) {
    return CollectReports("sweep", paths, options.file.jobs,
                          [&](const std::string& file, size_t threads) {
                            SweepFlags flags = options;
                            if (!confs.empty()) flags.confs = confs.at(file);
                            return AnswerFile("sweep", file, inputs, flags.file, threads,
                                              [&](const Study& study, const FileRun& run) {
                                                return SweepDevice(study, run, flags);
                                              });
                          });
  };
  ASSIGN_OR_RETURN(std::vector<proto::Report> alone, sweep(recordings));
  for (proto::Report& report : alone) reports.push_back(std::move(report));
  for (const proto::Report& file : reports) {
    if (!file.error().empty()) errors->insert(file.error());
  }
  if (!options.confs.empty()) return CompareTogether(reports);

  const std::vector<std::string> candidates = CommonCandidates(reports);
  std::vector<std::string> lacking;
  std::vector<proto::Together::Untried> untried;
  for (size_t i = 0; i < reports.size(); ++i) {
    std::vector<std::string> missing = Untried(reports[i], candidates);
    if (missing.empty() || !reports[i].error().empty()) continue;
    if (i >= elsewhere) {
      lacking.push_back(recordings[i - elsewhere]);
      confs[lacking.back()] = std::move(missing);
      continue;
    }
    proto::Together::Untried& file = untried.emplace_back();
    file.set_file(reports[i].file());
    for (std::string& conf : missing) file.add_confs(std::move(conf));
  }
  if (!lacking.empty()) {
    ASSIGN_OR_RETURN(const std::vector<proto::Report> others, sweep(lacking));
    for (size_t i = elsewhere, next = 0; i < reports.size() && next < lacking.size(); ++i) {
      if (recordings[i - elsewhere] == lacking[next]) AddRows(others[next++], &reports[i]);
    }
  }
  proto::Together answer = CompareTogether(reports);
  for (proto::Together::Untried& file : untried) *answer.add_untried() = std::move(file);
  return answer;
}

absl::StatusOr<int> AnswerTogether(const Inputs& inputs, const SweepFlags& options) {
  ASSIGN_OR_RETURN(const std::vector<std::string> files, ExpandDirectories(inputs.files()));
  std::set<std::string> errors;  // a file that is named twice is reported once
  absl::StatusOr<proto::Together> together = SweepTogether(files, inputs, options, &errors);
  if (!together.ok()) return Within("sweep", together.status());
  proto::Report report = NewReport("sweep");
  *report.mutable_together() = *std::move(together);
  const proto::Together& answer = report.together();
  for (const std::string& error : errors) PrintError(error);
  RETURN_IF_ERROR(PrintAnswer(report, options.file.json, [&] {
    return RenderTogether(answer, static_cast<size_t>(options.top.value_or(10)));
  }));
  if (answer.failed() > 0) return kExitUnusable;
  return !answer.rows().empty() && answer.rows(0).ooms() == 0 ? kExitAnswered : kExitBad;
}

}  // namespace

absl::StatusOr<int> RunSweep(const CommandLine& line) {
  SweepFlags options;
  FlagSet flags("sweep FILE...|MODEL [flags]", kSweepHelp);
  AddConfsFlag(&flags, &options.confs,
               "settings to try instead of a search; may be given several times");
  AddSettingsFlags(&options.file.settings, &flags);
  AddStartFlag(&options.start, &flags);
  AddDeviceFlag(&options.file.device, &flags);
  flags.AddNumber("top", "N", &options.top,
                  "how many of the ranked settings to print (default: 10)", 1);
  flags.AddText("costs", "FILE", &options.costs_file,
                "the cost of driver calls, as written by memreplay gpu --costs-out; adds a\n"
                "column with the time of each row's calls");
  flags.AddSwitch("together", &options.together,
                  "find the settings that suit all FILEs at once, such as the ranks of a job;\n"
                  "a FILE may also be what sweep --json printed");
  AddFileFlags(&options.file, &flags);
  ASSIGN_OR_RETURN(const std::optional<Inputs> inputs, ParseInputs(line, "sweep", &flags));
  if (!inputs.has_value()) return kExitAnswered;
  if (options.costs_file.has_value()) {
    absl::StatusOr<DriverCosts> costs = ReadCosts(*options.costs_file);
    if (!costs.ok()) return Within("sweep: --costs", costs.status());
    options.costs = *std::move(costs);
  }
  if (options.together) return AnswerTogether(*inputs, options);
  return AnswerFiles("sweep", *inputs, options.file, [&](const Study& study, const FileRun& run) {
    return SweepDevice(study, run, options);
  });
}

}  // namespace memreplay

// memreplay fit script and memreplay sweep script
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_split.h"
#include "cli/commands/command.h"
#include "cli/commands/file_command.h"
#include "cli/commands/help.h"
#include "cli/flags/flags.h"
#include "cli/flags/record_flags.h"
#include "cli/flags/replay_flags.h"
#include "cli/io/output.h"
#include "experiment/recorded_runs.h"
#include "experiment/value_trials.h"
#include "report/text/render.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

struct ScriptFlags {
  ValueQuestion question;
  std::optional<Decimal> step;
  std::optional<Decimal> max;
  std::optional<int64_t> jobs;
  bool no_cache = false;
  bool json = false;
  std::vector<Decimal> listed;  // of sweep
};

// Takes each --KEY=? or, for a sweep, --KEY=A,B,C among the flags: the argument of the script.
void AddScriptKey(bool is_fit, FlagSet* flags, ScriptFlags* options) {
  flags->AddOthers([is_fit, flags, options](std::string_view name,
                                            std::string_view value) -> absl::StatusOr<bool> {
    const bool is_list =
        value.find(',') != value.npos && value.find_first_not_of("0123456789.,") == value.npos;
    if (is_fit ? value != "?" : !is_list || flags->Has(name)) return false;
    const std::string given = StrCat("--", name);
    if (!options->question.key.name.empty()) {
      return InvalidArgument("expected one argument with values, found ",
                             options->question.key.name, " and ", given);
    }
    options->question.key.name = given;
    if (is_fit) return true;
    for (const absl::string_view part : absl::StrSplit(ToAbsl(value), ',', absl::SkipEmpty())) {
      const std::optional<Decimal> number = ParseDecimal(ToStd(part));
      if (!number.has_value()) {
        return InvalidArgument(given, "=", value, ": expected numbers with at most ",
                               Decimal::kMaxDecimals, " decimals");
      }
      options->listed.push_back(*number);
    }
    return true;
  });
}

// Finds the key of `fit script` in the words of the script, if it was not given before them.
absl::Status FindKey(bool is_fit, ScriptFlags* options) {
  for (const std::string& word : options->question.script.program) {
    if (!is_fit || !options->question.key.name.empty()) break;
    if (word.starts_with("--") && word.ends_with("=?")) {
      options->question.key.name = word.substr(0, word.size() - 2);
    }
  }
  if (!options->question.key.name.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(is_fit ? "expected --KEY=?, as in --batch_size=?"
                                           : "expected --KEY=A,B,C before the script, as in "
                                             "--batch_size=8,16");
}

void AddDecimalFlag(std::string_view name, std::optional<Decimal>* target, std::string_view help,
                    FlagSet* flags) {
  flags->AddParsed(name, "N", help, [target](std::string_view text) {
    *target = ParseDecimal(text);
    return target->has_value()
               ? absl::OkStatus()
               : InvalidArgument("expected a number with at most ", Decimal::kMaxDecimals,
                                 " decimals, found '", text, "'");
  });
}

absl::StatusOr<int> RunScript(bool is_fit, const CommandLine& line) {
  ScriptFlags options;
  ValueQuestion& question = options.question;
  RecordOptions& script = question.script;
  question.finds_largest = is_fit;
  FlagSet flags(is_fit ? "fit script --KEY=? [flags] [--] PROGRAM [ARGUMENTS]"
                       : "sweep script --KEY=A,B,C [flags] [--] PROGRAM [ARGUMENTS]",
                is_fit ? kFitScriptHelp : kSweepScriptHelp);
  flags.AddTexts("card", "NAME", &question.cards,
                 "a GPU to simulate, may be given several times; see record --card list");
  AddConfsFlag(&flags, &question.confs,
               "PYTORCH_CUDA_ALLOC_CONF of the script; may be given several times");
  if (is_fit) {
    AddDecimalFlag("step", &options.step,
                   "try only multiples of N (default: 1, or 0.01 by the argument's name)", &flags);
    AddDecimalFlag("max", &options.max,
                   "the largest value to try (default: 1048576, or 1 for a step below 1)", &flags);
  }
  flags.AddText("until", "TEXT", &script.until,
                "stop the script once it has printed TEXT, and take it that it fits:\n"
                "'Application startup complete' of a server");
  AddRecordFlags(&script, &flags);
  AddJobs(&flags, &options.jobs);
  flags.AddSwitch("no-cache", &options.no_cache, "run everything again");
  AddJsonFlag(&options.json, &flags);
  AddScriptKey(is_fit, &flags, &options);
  ASSIGN_OR_RETURN(std::vector<std::string> program, flags.ParseLeading(line.args));
  if (flags.help_requested()) return ShowHelp(line, flags);
  SetProgram(std::move(program), &script);
  if (absl::c_any_of(question.cards, IsCardList)) return ListCards(options.json);
  RETURN_IF_ERROR(FindKey(is_fit, &options));
  if (question.cards.empty()) return NoCard(script.program);
  ASSIGN_OR_RETURN(question.values,
                   TriedValuesOf(question.key.name, options.step, options.max, options.listed));
  for (const std::string& card : question.cards) {
    script.card = card;
    RETURN_IF_ERROR(CheckRecordCall(script));
  }

  RecordedRuns runner(static_cast<size_t>(options.jobs.value_or(0)), !options.no_cache);
  absl::StatusOr<proto::ScriptReport> report = [&] {
    Progress progress(StrCat("running ", script.program[0]), /*takes_long=*/true);
    return TryValues(question, &runner, &progress);
  }();
  if (!report.ok() && absl::IsCancelled(report.status())) {
    PrintError(
        StrCat(is_fit ? "fit" : "sweep", " script: no run had ended when it was interrupted"));
    return runner.exit_status();
  }
  if (!report.ok()) return report.status();
  RETURN_IF_ERROR(PrintAnswer(*report, options.json, [&] {
    return is_fit ? RenderScriptFit(*report) : RenderScriptSweep(*report);
  }));
  if (!runner.stopped_by().empty()) return runner.exit_status();
  return ValuesFit(question, *report) ? kExitAnswered : kExitBad;
}

}  // namespace

absl::StatusOr<int> RunFitScript(const CommandLine& line) {
  const absl::StatusOr<int> status = RunScript(true, line);
  return status.ok() ? status : Within("fit script", status.status());
}

absl::StatusOr<int> RunSweepScript(const CommandLine& line) {
  const absl::StatusOr<int> status = RunScript(false, line);
  return status.ok() ? status : Within("sweep script", status.status());
}

}  // namespace memreplay

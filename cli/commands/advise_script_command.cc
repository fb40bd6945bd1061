// memreplay advise, about a script (advise_recording_command.cc: or a recording)
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "cli/commands/command.h"
#include "cli/commands/file_command.h"
#include "cli/commands/help.h"
#include "cli/flags/flags.h"
#include "cli/flags/record_flags.h"
#include "cli/flags/replay_flags.h"
#include "cli/io/output.h"
#include "experiment/advise_script.h"
#include "experiment/recorded_runs.h"
#include "experiment/script_search.h"
#include "hardware/cards.h"
#include "record/card/model/options.h"
#include "report/text/render.h"
#include "report/words/new_report.h"
#include "report/words/verdict.h"
#include "trace/bytes/json_scanner.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

struct AdviseFlags {
  AdviceQuestion question;
  std::vector<std::string> cards;
  AdviseKey key;
  std::optional<int64_t> most;
  std::optional<int64_t> jobs;
  std::optional<int64_t> patch;
  bool no_cache = false;
  bool json = false;
};

// Sets the memory of the GPU: its own, or --capacity if given.
absl::Status SetMemory(AdviceQuestion* question) {
  const RecordOptions& script = question->script;
  if (script.card.empty()) return absl::OkStatus();
  std::string why;
  const std::optional<Card> card = FindCard(script.card, &why);
  if (!card.has_value()) return InvalidArgument("--card ", script.card, ": ", why);
  question->memory = Bytes(card->memory);
  const auto given = script.card_options.find(std::string(card::kCapacity.variable));
  if (given != script.card_options.end()) {
    question->memory = Bytes(static_cast<uint64_t>(
        ParseInt64(given->second).value_or(static_cast<int64_t>(card->memory))));
  }
  return absl::OkStatus();
}

// Errors: there is no such row, or its change is made without editing a file.
absl::Status PrintPatch(const proto::Advice& advice, int64_t number) {
  const auto tried = absl::c_count_if(advice.rows(), [](const auto& row) { return IsTried(row); });
  if (number < 1 || number > tried) {
    return InvalidArgument("--patch ", number, ": expected the number of a row, 1 to ", tried);
  }
  const proto::Advice::Row& row = advice.rows(static_cast<int>(number) - 1);
  if (row.patch().empty()) {
    return InvalidArgument("--patch ", number, ": ", row.change(),
                           " changes no file; the answer without --patch says "
                           "how it is made");
  }
  // patch passes over lines in front of a diff.
  return Print(StrCat(row.patch_folder().empty() ? "" : StrCat("In ", row.patch_folder(), ":\n"),
                      row.patch()));
}

FlagSet FlagsOf(AdviseFlags* options) {
  FlagSet flags("advise [script] --card NAME [--KEY=N] [--KEY=?] [flags] [--] PROGRAM [ARGUMENTS]",
                kAdviseScriptHelp);
  flags.AddTexts("card", "NAME", &options->cards,
                 "the GPU that the script should fit; record --card list prints those known;\n"
                 "of several, the answer says which it fits, and with which change");
  flags.AddTexts("try", "REMEDY", &options->question.only,
                 "try only this change, such as checkpoint:Block; may be given several times");
  flags.AddNumber("max-runs", "N", &options->most,
                  "how many pairs and triples to run at most, and how many runs to look for\n"
                  "largest values in (default: 24)",
                  1);
  AddRecordFlags(&options->question.script, &flags);
  flags.AddNumber("patch", "N", &options->patch,
                  "print only the patch of row N, for patch -p1 in the script's folder");
  AddJobs(&flags, &options->jobs);
  flags.AddSwitch("no-cache", &options->no_cache, "run everything again");
  AddJsonFlag(&options->json, &flags);
  return flags;
}

// Error: the flags contradict each other or the script.
absl::Status Check(const AdviseFlags& options) {
  const AdviceQuestion& question = options.question;
  const RecordOptions& script = question.script;
  if (script.program.empty()) {
    return absl::InvalidArgumentError(
        "expected a script, such as train.py, -- and a command that starts one, or the FILE of a "
        "recording");
  }
  if (options.patch.has_value() && options.cards.size() > 1) {
    return absl::InvalidArgumentError("--patch: expected one --card");
  }
  if (script.no_notes) {
    return absl::InvalidArgumentError("--no-notes: without them nothing is known of the modules");
  }
  RETURN_IF_ERROR(CheckRecordCall(script));
  RETURN_IF_ERROR(CheckRemedies("--try", question.only));
  if (question.value == 0 && question.finds_largest && question.key.IsIn(script.program)) {
    return InvalidArgument(question.key.name, "=?: expected ", question.key.name,
                           "=N as well, for the ? in the script's arguments");
  }
  return absl::OkStatus();
}

// Prints what is known and returns the exit status.
absl::StatusOr<int> PrintAdvice(const AdviseFlags& options, std::vector<proto::Advice> advices,
                                const RecordedRuns& runner) {
  proto::Report report = NewReport("advise");
  report.set_file(absl::StrJoin(options.question.script.program, " "));
  const bool fits = absl::c_any_of(advices, AdviceFits);
  if (options.cards.size() > 1) {
    proto::CardChoice& choice = *report.mutable_card_choice();
    for (proto::Advice& advice : advices) *choice.add_cards() = std::move(advice);
    RETURN_IF_ERROR(
        PrintAnswer(report, options.json, [&] { return RenderCardChoice(report.file(), choice); }));
  } else {
    *report.mutable_advice() = std::move(advices.front());
    if (options.patch.has_value()) {
      RETURN_IF_ERROR(PrintPatch(report.advice(), *options.patch));
      return kExitAnswered;
    }
    RETURN_IF_ERROR(PrintAnswer(report, options.json,
                                [&] { return RenderAdvice(report.file(), report.advice()); }));
  }
  if (!runner.stopped_by().empty()) return runner.exit_status();
  return fits ? kExitAnswered : kExitBad;
}

absl::StatusOr<int> AdviseScriptCommand(const CommandLine& line) {
  AdviseFlags options;
  FlagSet flags = FlagsOf(&options);
  AddAdviseKey(&flags, &options.key);
  ASSIGN_OR_RETURN(std::vector<std::string> program, flags.ParseLeading(line.args));
  if (flags.help_requested()) return ShowHelp(line, flags);
  AdviceQuestion& question = options.question;
  RecordOptions& script = question.script;
  SetProgram(std::move(program), &script);
  for (const std::string& card : options.cards) {
    if (IsCardList(card)) return ListCards(options.json);
    script.card = card;
    RETURN_IF_ERROR(SetMemory(&question));
  }
  if (options.cards.empty() && !script.program.empty()) return NoCard(script.program);
  question.key.name = options.key.name;
  question.value = options.key.value;
  question.finds_largest = options.key.finds_largest;
  RETURN_IF_ERROR(Check(options));
  if (options.most.has_value()) question.max_runs = static_cast<size_t>(*options.most);
  RecordedRuns runner(static_cast<size_t>(options.jobs.value_or(0)), !options.no_cache);
  std::vector<proto::Advice> advices;
  for (const std::string& card : options.cards) {
    script.card = card;
    RETURN_IF_ERROR(SetMemory(&question));
    Progress progress(StrCat("running ", script.program[0]), /*takes_long=*/true);
    absl::StatusOr<proto::Advice> advice = AdviseScript(question, &runner, &progress);
    if (!advice.ok() && absl::IsCancelled(advice.status())) break;
    if (!advice.ok()) return advice.status();
    advices.push_back(*std::move(advice));
    if (!runner.stopped_by().empty()) break;
  }
  if (advices.empty()) {
    PrintError("advise: no run had ended when it was interrupted");
    return runner.exit_status();
  }
  return PrintAdvice(options, std::move(advices), runner);
}

}  // namespace

// A script is what stands behind "--" or begins with "-m", and what has a word NAME.py, unless the
// first word is a file that cannot be started.
std::string_view FormOfAdvise(absl::Span<const std::string> args) {
  AdviseFlags options;
  const auto first = args.begin() + FlagsOf(&options).EndOfLeading(args);
  if (first == args.end() || *first == "--") return "advise script";
  const bool is_file = !first->ends_with(".py") && access(first->c_str(), F_OK) == 0 &&
                       access(first->c_str(), X_OK) != 0;
  const bool is_script = std::any_of(first, args.end(), [](const std::string& word) {
    return word == "-m" || (!word.starts_with('-') && word.ends_with(".py"));
  });
  return is_script && !is_file ? "advise script" : "advise recording";
}

void AddAdviseKey(FlagSet* flags, AdviseKey* key) {
  flags->AddOthers(
      [flags, key](std::string_view name, std::string_view value) -> absl::StatusOr<bool> {
        const std::optional<int64_t> number = ParseInt64(value);
        if (value != "?" && (!number.has_value() || flags->Resembles(name))) return false;
        const std::string given = StrCat("--", name);
        if (!key->name.empty() && key->name != given) {
          return InvalidArgument("expected one argument of the script, found ", key->name, " and ",
                                 given);
        }
        key->name = given;
        if (value == "?") {
          key->finds_largest = true;
          return true;
        }
        if (*number < 1 || *number > ScriptSearch::kMaxValue || key->value != 0) {
          return InvalidArgument(given, ": expected one value from 1 to 2^40, found ", value,
                                 key->value != 0 ? StrCat(" and ", key->value) : "");
        }
        key->value = *number;
        return true;
      });
}

absl::StatusOr<int> RunAdvise(const CommandLine& line) {
  return FindCommand(FormOfAdvise(line.args))->run(line);
}

absl::StatusOr<int> RunAdviseScript(const CommandLine& line) {
  const absl::StatusOr<int> status = AdviseScriptCommand(line);
  return status.ok() ? status : Within("advise", status.status());
}

}  // namespace memreplay

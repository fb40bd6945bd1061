// memreplay advise -- PROGRAM
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "cli/advise_key.h"
#include "cli/command.h"
#include "cli/file_command.h"
#include "cli/flags.h"
#include "cli/inputs.h"
#include "cli/output.h"
#include "cli/record_flags.h"
#include "cli/replay_flags.h"
#include "cli/script_runs.h"
#include "hardware/cards.h"
#include "record/card/options.h"
#include "report/ask/advice.h"
#include "report/ask/advise_script.h"
#include "report/ask/script_search.h"
#include "report/text/render_advice.h"
#include "report/words/new_report.h"
#include "report/words/sizes.h"
#include "report/words/verdict.h"
#include "trace/bytes/json_scanner.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr char kAdviseDescription[] =
    "Finds out which changes to a PyTorch script make it fit a GPU. The script runs on a\n"
    "simulated GPU as it is, and then with each change that may help: allocator settings,\n"
    "activation checkpointing, saved tensors on the host, the loss in chunks, the optimizer's\n"
    "step, autocast, no_grad in evaluation, outputs that nothing reads and others\n"
    "(docs/advise.md). Where no single change is enough, pairs and triples follow. The answer\n"
    "ranks the changes by what they cost and ends with the lines to write for the best one.\n"
    "torch.compile takes minutes and is tried only with --try compile:MODEL.\n"
    "\n"
    "Changes are made to PyTorch's and the script's functions while the script runs; no file\n"
    "is edited. A change that alters what is computed is marked. The best one is confirmed on\n"
    "a simulated GPU of the given size.\n"
    "\n"
    "With --ranks N, changes that use N GPUs are tried as well: FSDP2, ZeRO, DDP, each rank with\n"
    "its part of the batch. Where the script is a job of several ranks, or becomes one, every\n"
    "rank is run, and the one that needs most counts; --rank K runs this one alone.\n"
    "\n"
    "The script should be short: two iterations are enough, and --steps 2 ends it after two\n"
    "steps of its optimizer. Results are cached, as for fit\n"
    "script.\n"
    "\n"
    "--batch_size=64, or any other argument of the script with a number, makes all runs with\n"
    "that value: the answer is what makes it fit with it. --batch_size=? adds a column: the\n"
    "largest value with which the script fits as it is, and with each change. The script gets\n"
    "--batch_size=N at the end, or N in place of each ? in ARGUMENTS.\n"
    "\n"
    "All flags stand before PROGRAM; what follows its name is its own.\n"
    "\n"
    "advise FILE --card NAME, without a script, answers for a recording, by editing it; and\n"
    "advise A=8 B=16 --batch_size=? --card NAME for recordings with two values of an argument;\n"
    "see memreplay advise recording --help.\n"
    "\n"
    "The exit status is 1 if nothing that was tried makes the script fit. Ctrl-C or SIGTERM ends\n"
    "it with the rows that are known by then, and exit status 130 or 143.";

struct AdviseFlags {
  AdviseKey key;
  RecordOptions run;
  std::vector<std::string> only;
  std::optional<int64_t> most;
  std::optional<int64_t> jobs;
  bool no_cache = false;
  bool json = false;
};

// A run of the script on a GPU with unlimited memory.
ScriptRun RunOf(const RecordOptions& base, const std::vector<std::string>& remedies) {
  ScriptRun run;
  run.options = base;
  run.options.card_options[std::string(card::kCapacity.variable)] = StrCat(card::kMaxBytes);
  run.options.remedies = remedies;
  run.options.survey = remedies.empty();
  return run;
}

std::vector<ScriptRun> RunsOf(const RecordOptions& base,
                              absl::Span<const std::vector<std::string>> remedies) {
  std::vector<ScriptRun> runs;
  for (const std::vector<std::string>& names : remedies) runs.push_back(RunOf(base, names));
  return runs;
}

// Returns what the snapshots of a run report.
absl::Status StudyRun(proto::RecordReport* report) {
  proto::AdvisedRun& advised = *report->mutable_advised();
  for (const proto::RecordedProcess& process : report->processes()) {
    const absl::StatusOr<OpenedFile> opened = OpenWithSettings(process.snapshot(), {});
    if (!opened.ok()) return opened.status();
    if (const absl::Status added = AddAdvisedProcess(opened->studied, process, &advised);
        !added.ok()) {
      return added;
    }
  }
  return absl::OkStatus();
}

// The same run for each other rank of the job, if `group` ranks are one and no rank was chosen.
std::vector<ScriptRun> OtherRanks(const ScriptRun& run, int group) {
  std::vector<ScriptRun> others;
  if (group < 2 || run.options.rank.has_value()) return others;
  for (int64_t rank = 1; rank < run.options.ranks.value_or(1); ++rank) {
    ScriptRun& other = others.emplace_back(run);
    other.options.rank = rank;
    other.options.survey = false;
  }
  return others;
}

absl::StatusOr<proto::Advice> Advise(const AdviseFlags& options, AdviceQuestion question,
                                     ScriptRunner& runner) {
  Progress progress(StrCat("running ", options.run.program[0]));
  question.at_once = runner.jobs();
  const auto began = std::chrono::steady_clock::now();
  RecordOptions base = options.run;
  const ScriptKey key = {options.key.name};
  if (options.key.value > 0) base.program = key.WordsWith(base.program, StrCat(options.key.value));
  bool has_ranks = false;
  const auto advised_of_rank =
      [&](absl::Span<const ScriptRun> made) -> absl::StatusOr<std::vector<proto::AdvisedRun>> {
    std::vector<proto::AdvisedRun> runs;
    for (absl::StatusOr<ScriptRunner::Answer>& answer : runner.RunEach(made, StudyRun)) {
      proto::AdvisedRun& run = runs.emplace_back();
      if (answer.ok()) {
        run = answer->report.advised();
        // Its figures are those of a part of the run.
        if (const proto::ScriptRow row = ScriptRowOf(answer->report); !row.fits()) {
          run.set_error(row.refusal().empty() ? StrCat("memory runs out even on a GPU of ",
                                                       FormatSize(card::kMaxBytes))
                                              : StrCat("memory is too little: ", row.refusal()));
        }
      } else if (absl::IsCancelled(answer.status())) {
        run.set_interrupted(true);
      } else {
        run.set_error(std::string(answer.status().message()));
      }
    }
    return runs;
  };
  const auto advised =
      [&](absl::Span<const ScriptRun> made) -> absl::StatusOr<std::vector<proto::AdvisedRun>> {
    absl::StatusOr<std::vector<proto::AdvisedRun>> runs = advised_of_rank(made);
    if (!runs.ok()) return runs;
    std::vector<ScriptRun> others;
    std::vector<proto::AdvisedRun*> jobs;  // of each of the others
    for (size_t i = 0; i < made.size(); ++i) {
      for (ScriptRun& other : OtherRanks(made[i], runs->at(i).group())) {
        others.push_back(std::move(other));
        jobs.push_back(&runs->at(i));
      }
    }
    if (others.empty()) return runs;
    has_ranks = true;
    const absl::StatusOr<std::vector<proto::AdvisedRun>> found = advised_of_rank(others);
    if (!found.ok()) return found;
    for (size_t i = 0; i < others.size(); ++i) {
      if (found->at(i).interrupted()) *jobs[i] = found->at(i);
      if (!jobs[i]->interrupted()) MergeRank(found->at(i), jobs[i]);
    }
    return runs;
  };
  const auto run_each = [&](absl::Span<const std::vector<std::string>> remedies) {
    progress.SetActivity(
        remedies.size() == 1 && remedies[0].empty()
            ? StrCat("running ", base.program[0])
            : StrCat("running ", base.program[0], " with ",
                     FormatCount(static_cast<int64_t>(remedies.size()), "change")));
    return advised(RunsOf(base, remedies));
  };
  const auto run_values = [&](const std::vector<std::string>& remedies,
                              absl::Span<const int64_t> values) {
    progress.SetActivity(StrCat("looking for the largest ", key.name));
    std::vector<ScriptRun> runs;
    for (const int64_t value : values) {
      runs.push_back(RunOf(base, remedies));
      runs.back().name = StrCat(value);
      runs.back().options.program = key.WordsWith(options.run.program, runs.back().name);
    }
    return advised(runs);
  };
  const auto confirm = [&](const std::vector<std::string>& remedies,
                           const std::string& conf) -> absl::StatusOr<bool> {
    ScriptRun run;
    run.options = base;
    run.options.remedies = remedies;
    if (!conf.empty()) run.options.environment["PYTORCH_CUDA_ALLOC_CONF"] = conf;
    int group = 0;
    const auto fits = [&](const std::vector<ScriptRun>& runs) -> absl::StatusOr<bool> {
      for (const absl::StatusOr<ScriptRunner::Answer>& answer : runner.RunEach(runs)) {
        if (!answer.ok()) return answer.status();
        if (!ScriptRowOf(answer->report).fits()) return false;
        for (const proto::RecordedProcess& process : answer->report.processes()) {
          group = std::max(group, process.group());
        }
      }
      return true;
    };
    const absl::StatusOr<bool> first = fits({run});
    if (!first.ok() || !*first) return first;
    return fits(OtherRanks(run, group));
  };
  absl::StatusOr<proto::Advice> advice = AdviseScript(question, run_each, confirm, run_values);
  if (!advice.ok()) return advice;
  if (has_ranks) {
    advice->add_notes(
        "Every rank of the job was run; of each change, the rank that needs most counts.");
  }
  advice->set_runs(runner.made());
  advice->set_from_cache(runner.from_cache());

  advice->set_seconds(
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  return advice;
}

// Returns the memory of the GPU, or --capacity if given.
absl::StatusOr<AdviceQuestion> QuestionOf(const AdviseFlags& options) {
  AdviceQuestion question;
  question.only = options.only;
  question.key = options.key.name;
  question.value = options.key.value;
  question.finds_largest = options.key.finds_largest;
  question.card = options.run.card;
  if (options.run.card.empty()) return question;
  std::string why;
  const std::optional<Card> card = FindCard(options.run.card, &why);
  if (!card.has_value()) {
    return absl::InvalidArgumentError(StrCat("--card ", options.run.card, ": ", why));
  }
  question.memory = Bytes(card->memory);
  const auto given = options.run.card_options.find(std::string(card::kCapacity.variable));
  if (given != options.run.card_options.end()) {
    question.memory = Bytes(static_cast<uint64_t>(
        ParseInt64(given->second).value_or(static_cast<int64_t>(card->memory))));
  }
  if (options.most.has_value()) {
    if (*options.most < 1) {
      return absl::InvalidArgumentError(
          StrCat("--max-runs: expected at least 1, found ", *options.most));
    }
    question.max_runs = static_cast<size_t>(*options.most);
  }
  return question;
}

FlagSet FlagsOf(AdviseFlags* options) {
  FlagSet flags("advise [script] --card NAME [--KEY=N] [--KEY=?] [flags] [--] PROGRAM [ARGUMENTS]",
                kAdviseDescription);
  flags.AddText("card", "NAME", &options->run.card,
                "the GPU that the script should fit; record --card list prints those known");
  flags.AddTexts("try", "REMEDY", &options->only,
                 "try only this change, such as checkpoint:Block; may be given several times");
  flags.AddNumber("max-runs", "N", &options->most,
                  "how many pairs and triples to run at most, and how many runs to look for\n"
                  "largest values in (default: 24)");
  AddRecordFlags(&options->run, &flags);
  AddJobs(&flags, &options->jobs);
  flags.AddSwitch("no-cache", &options->no_cache, "run everything again");
  AddJsonFlag(&options->json, &flags);
  return flags;
}

absl::StatusOr<int> AdviseScriptCommand(const CommandLine& line) {
  AdviseFlags options;
  FlagSet flags = FlagsOf(&options);
  AddAdviseKey(&flags, &options.key);
  absl::StatusOr<std::vector<std::string>> program = flags.ParseLeading(line.args);
  if (!program.ok()) return program.status();
  if (flags.help_requested()) return ShowHelp(line, flags);
  SetProgram(*std::move(program), &options.run);
  if (IsCardList(options.run.card)) return ListCards(options.json);
  if (options.run.card.empty() && !options.run.program.empty()) return NoCard(options.run.program);
  const absl::StatusOr<AdviceQuestion> question = QuestionOf(options);
  if (!question.ok()) return question.status();
  if (options.run.program.empty()) {
    return absl::InvalidArgumentError(
        "expected a script, such as train.py, -- and a command that starts one, or the FILE of a "
        "recording");
  }
  if (options.jobs.value_or(1) < 1) {
    return absl::InvalidArgumentError(StrCat("--jobs: expected at least 1, found ", *options.jobs));
  }
  if (options.run.no_notes) {
    return absl::InvalidArgumentError("--no-notes: without them nothing is known of the modules");
  }
  if (const absl::Status call = CheckRecordCall(options.run); !call.ok()) return call;
  if (const absl::Status known = CheckRemedies("--try", options.only); !known.ok()) return known;
  if (options.key.value == 0 && options.key.finds_largest &&
      ScriptKey{options.key.name}.IsIn(options.run.program)) {
    return absl::InvalidArgumentError(StrCat(options.key.name, "=?: expected ", options.key.name,
                                             "=N as well, for the ? in the script's arguments"));
  }
  ScriptRunner runner(static_cast<size_t>(options.jobs.value_or(0)), !options.no_cache);
  absl::StatusOr<proto::Advice> advice = Advise(options, *question, runner);
  if (!advice.ok() && absl::IsCancelled(advice.status())) {
    PrintError("advise: no run had ended when it was interrupted");
    return runner.stop().exit_status();
  }
  if (!advice.ok()) return advice.status();

  proto::Report report = NewReport("advise");
  report.set_file(absl::StrJoin(options.run.program, " "));
  *report.mutable_advice() = *std::move(advice);
  const absl::Status printed = PrintAnswer(
      report, options.json, [&] { return RenderAdvice(report.file(), report.advice()); });
  if (!printed.ok()) return printed;
  if (runner.stop().received()) return runner.stop().exit_status();
  return AdviceFits(report.advice()) ? kExitAnswered : kExitBad;
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

absl::StatusOr<int> RunAdviseScript(const CommandLine& line) {
  const absl::StatusOr<int> status = AdviseScriptCommand(line);
  return status.ok() ? status : Within("advise", status.status());
}

}  // namespace memreplay

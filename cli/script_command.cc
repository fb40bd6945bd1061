// memreplay fit script and memreplay sweep script
#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "cli/command.h"
#include "cli/file_command.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "cli/record_flags.h"
#include "cli/replay_flags.h"
#include "cli/script_runs.h"
#include "report/ask/script_search.h"
#include "report/text/render_script.h"
#include "report/words/new_report.h"
#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr char kFitScriptDescription[] =
    "Runs a PyTorch script on a simulated GPU, repeatedly, and finds the largest value of one\n"
    "of its arguments for which memory does not run out. --KEY=? names the argument: the\n"
    "script gets --KEY=N at the end, or N in place of each ? in ARGUMENTS, where --KEY=? may\n"
    "also stand alone. All other flags stand before PROGRAM; what follows its name is its own.\n"
    "\n"
    "Values between the largest that fits and the smallest that does not are tried, several at\n"
    "a time. They are integers, or with --step 0.01 such decimal numbers. An argument whose\n"
    "name has 'utilization' or 'fraction' is one between 0 and 1, found to 0.01.\n"
    "\n"
    "A value does not fit either if the script itself ends because memory is too little, as\n"
    "vLLM and SGLang do. Where they say to increase the argument, larger values are tried. A\n"
    "server that does not end by itself is stopped with --until.\n"
    "\n"
    "Results are cached: the same script, arguments, GPU and PyTorch are not run twice. The\n"
    "cache notices changes to Python files that the script imports, but not changes to its\n"
    "data (--no-cache).\n"
    "\n"
    "The exit status is 1 if no value fits on some GPU. Ctrl-C or SIGTERM ends the search with\n"
    "the bounds that are known by then, and exit status 130 or 143.";

constexpr char kSweepScriptDescription[] =
    "Runs a PyTorch script on simulated GPUs with several values of one of its arguments and\n"
    "ranks them: those that fit first, then by peak reserved memory. --KEY=A,B,C names the\n"
    "argument and its values; --card and --conf may be given several times, and every\n"
    "combination is run.\n"
    "\n"
    "Results are cached, as for fit script.\n"
    "\n"
    "The exit status is 1 if memory runs out in every run. Ctrl-C or SIGTERM ends it with the\n"
    "rows that are known by then, and exit status 130 or 143.";

constexpr int64_t kUsualMax = int64_t{1} << 20;  // value, unless --max says another
constexpr size_t kMaxDecimals = 4;

// A number with decimals, as an integer.
struct Decimal {
  int64_t units = 0;
  int64_t scale = 1;  // units in 1: a power of ten
};

// Returns nullopt for other text than digits with at most kMaxDecimals after a point.
std::optional<Decimal> ParseDecimal(std::string_view text) {
  Decimal number;
  const size_t point = std::min(text.find('.'), text.size());
  std::string digits(text.substr(0, point));
  if (point < text.size()) {
    const std::string_view decimals = text.substr(point + 1);
    if (decimals.empty() || decimals.size() > kMaxDecimals) return std::nullopt;
    for (size_t i = 0; i < decimals.size(); ++i) number.scale *= 10;
    digits += decimals;
  }
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos ||
      !absl::SimpleAtoi(digits, &number.units)) {
    return std::nullopt;
  }
  return number;
}

// Whether an argument is a share of something, by its name.
bool IsShare(std::string_view name) {
  return name.find("utilization") != std::string_view::npos ||
         name.find("fraction") != std::string_view::npos;
}

// The values that are tried: multiples of `step` up to `max`, or `listed`, in units of 1 / `scale`.
struct ScriptValues {
  int64_t scale = 1;
  int64_t step = 1;
  int64_t max = 0;
  std::vector<int64_t> listed;
};

struct ScriptFlags {
  RecordOptions run;
  std::vector<std::string> cards;
  std::vector<std::string> confs;
  std::optional<Decimal> step;
  std::optional<Decimal> max;
  std::optional<int64_t> jobs;
  bool no_cache = false;
  bool json = false;
  ScriptKey key;
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
    if (!options->key.name.empty()) {
      return absl::InvalidArgumentError(
          StrCat("expected one argument with values, found ", options->key.name, " and ", given));
    }
    options->key.name = given;
    if (is_fit) return true;
    for (const absl::string_view part : absl::StrSplit(ToAbsl(value), ',', absl::SkipEmpty())) {
      const std::optional<Decimal> number = ParseDecimal(ToStd(part));
      if (!number.has_value()) {
        return absl::InvalidArgumentError(StrCat(
            given, "=", value, ": expected numbers with at most ", kMaxDecimals, " decimals"));
      }
      options->listed.push_back(*number);
    }
    return true;
  });
}

// Finds the key of `fit script` in the words of the script, if it was not given before them.
absl::Status FindKey(bool is_fit, ScriptFlags* options) {
  for (const std::string& word : options->run.program) {
    if (!is_fit || !options->key.name.empty()) break;
    if (word.starts_with("--") && word.ends_with("=?")) {
      options->key.name = word.substr(0, word.size() - 2);
    }
  }
  if (!options->key.name.empty()) return absl::OkStatus();
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
               : absl::InvalidArgumentError(StrCat("expected a number with at most ", kMaxDecimals,
                                                   " decimals, found '", text, "'"));
  });
}

absl::StatusOr<ScriptValues> ValuesOf(const ScriptFlags& options) {
  const Decimal step =
      options.step.value_or(IsShare(options.key.name) ? Decimal{1, 100} : Decimal{1, 1});
  const Decimal max = options.max.value_or(Decimal{step.units < step.scale ? 1 : kUsualMax, 1});
  ScriptValues values;
  values.scale = std::max(step.scale, max.scale);
  for (const Decimal& each : options.listed) values.scale = std::max(values.scale, each.scale);
  bool in_range = true;
  const auto units = [&](const Decimal& number) {
    in_range = in_range && number.units <= ScriptSearch::kMaxValue / values.scale * number.scale;
    return in_range ? number.units * (values.scale / number.scale) : 0;
  };
  values.step = units(step);
  values.max = units(max);
  for (const Decimal& each : options.listed) values.listed.push_back(units(each));
  if (!in_range || values.step < 1 || values.max < values.step) {
    return absl::InvalidArgumentError(StrCat(
        "--step, --max: expected 0 < step <= max <= ", ScriptSearch::kMaxValue / values.scale,
        " (by default, step is ",
        FormatValue(static_cast<double>(step.units) / static_cast<double>(step.scale)), " and max ",
        FormatValue(static_cast<double>(max.units) / static_cast<double>(max.scale)), ")"));
  }
  return values;
}

// Sets what an interrupted search knows: `rows` are those of the runs that had ended, by value.
void SetBounds(const std::map<int64_t, proto::ScriptRow>& rows, proto::ScriptCase* found) {
  for (const auto& [units, row] : rows) {
    if (row.fits()) {
      found->set_largest(row.value());
    } else if (!row.too_small()) {
      found->set_below(row.value());
      return;
    }
  }
}

absl::Status AnswerCases(bool is_fit, const ScriptFlags& options, const ScriptValues& tried,
                         ScriptRunner* runner, proto::ScriptReport* report) {
  const auto value_of = [&](int64_t units) {
    return static_cast<double>(units) / static_cast<double>(tried.scale);
  };
  const std::vector<std::string> confs =
      options.confs.empty() ? std::vector<std::string>{""} : options.confs;
  for (const std::string& card : options.cards) {
    for (const std::string& conf : confs) {
      const Progress progress(StrCat("running ", options.run.program[0], " on ", card));
      RecordOptions base = options.run;
      base.card = card;
      if (!options.confs.empty()) base.environment["PYTORCH_CUDA_ALLOC_CONF"] = conf;
      std::map<int64_t, proto::ScriptRow>
          ended;  // by value, of runs whose neighbours may have failed
      ScriptSearch search(
          [&](absl::Span<const int64_t> values) -> absl::StatusOr<std::vector<proto::ScriptRow>> {
            std::vector<ScriptRun> runs;
            for (const int64_t units : values) {
              const double value = value_of(units);
              runs.push_back({base, value, FormatValue(value)});
              runs.back().options.program = options.key.WordsWith(base.program, runs.back().name);
            }
            std::vector<proto::ScriptRow> rows;
            absl::Status failed;
            std::vector<absl::StatusOr<proto::ScriptRow>> answers = runner->Run(runs);
            for (size_t i = 0; i < answers.size(); ++i) {
              if (!answers[i].ok()) {
                failed.Update(answers[i].status());
                continue;
              }
              answers[i]->set_too_small(SaysToRaise(answers[i]->refusal(), options.key.name));
              ended[values[i]] = rows.emplace_back(*std::move(answers[i]));
            }
            if (!failed.ok()) return failed;
            return rows;
          },
          runner->jobs());
      proto::ScriptCase& found = *report->add_cases();
      found.set_card(card);
      found.set_conf(conf);
      absl::Status done;
      if (is_fit) {
        const absl::StatusOr<int64_t> largest = search.FindLargest(tried.step, tried.max);
        if (largest.ok()) found.set_largest(value_of(*largest));
        done = largest.status();
      } else {
        done = search.Try(tried.listed);
      }
      for (const auto& [value, row] : ended) *found.add_rows() = row;
      if (runner->stop().received()) {
        found.set_unfinished(!done.ok());
        if (is_fit && !done.ok()) SetBounds(ended, &found);
        return absl::OkStatus();
      }
      if (!done.ok()) return done;
    }
  }
  return absl::OkStatus();
}

bool IsGoodAnswer(bool is_fit, const proto::ScriptReport& report) {
  if (is_fit) {
    return std::all_of(report.cases().begin(), report.cases().end(),
                       [](const proto::ScriptCase& found) { return found.largest() > 0; });
  }
  return std::any_of(report.cases().begin(), report.cases().end(), [](const auto& found) {
    return std::any_of(found.rows().begin(), found.rows().end(),
                       [](const proto::ScriptRow& row) { return row.fits(); });
  });
}

absl::StatusOr<int> RunScript(bool is_fit, const CommandLine& line) {
  ScriptFlags options;
  FlagSet flags(is_fit ? "fit script --KEY=? [flags] [--] PROGRAM [ARGUMENTS]"
                       : "sweep script --KEY=A,B,C [flags] [--] PROGRAM [ARGUMENTS]",
                is_fit ? kFitScriptDescription : kSweepScriptDescription);
  flags.AddTexts("card", "NAME", &options.cards,
                 "a GPU to simulate, may be given several times; see record --card list");
  AddConfsFlag(&flags, &options.confs,
               "PYTORCH_CUDA_ALLOC_CONF of the script; may be given several times");
  if (is_fit) {
    AddDecimalFlag("step", &options.step,
                   "try only multiples of N (default: 1, or 0.01 by the argument's name)", &flags);
    AddDecimalFlag("max", &options.max,
                   "the largest value to try (default: 1048576, or 1 for a step below 1)", &flags);
  }
  flags.AddText("until", "TEXT", &options.run.until,
                "stop the script once it has printed TEXT, and take it that it fits:\n"
                "'Application startup complete' of a server");
  AddRecordFlags(&options.run, &flags);
  AddJobs(&flags, &options.jobs);
  flags.AddSwitch("no-cache", &options.no_cache, "run everything again");
  AddJsonFlag(&options.json, &flags);
  AddScriptKey(is_fit, &flags, &options);
  absl::StatusOr<std::vector<std::string>> program = flags.ParseLeading(line.args);
  if (!program.ok()) return program.status();
  if (flags.help_requested()) return ShowHelp(line, flags);
  SetProgram(*std::move(program), &options.run);
  if (std::any_of(options.cards.begin(), options.cards.end(), IsCardList)) {
    return ListCards(options.json);
  }
  if (const absl::Status key = FindKey(is_fit, &options); !key.ok()) return key;
  if (options.cards.empty()) return NoCard(options.run.program);
  const absl::StatusOr<ScriptValues> tried = ValuesOf(options);
  if (!tried.ok()) return tried.status();
  if (options.jobs.value_or(1) < 1) {
    return absl::InvalidArgumentError(StrCat("--jobs: expected at least 1, found ", *options.jobs));
  }
  for (const std::string& card : options.cards) {
    options.run.card = card;
    if (const absl::Status call = CheckRecordCall(options.run); !call.ok()) return call;
  }

  proto::ScriptReport report;
  SetVersions(&report);
  report.set_command(is_fit ? "fit script" : "sweep script");
  for (const std::string& word : options.run.program) report.add_program(word);
  report.set_key(options.key.name);
  const auto began = std::chrono::steady_clock::now();
  ScriptRunner runner(static_cast<size_t>(options.jobs.value_or(0)), !options.no_cache);
  if (const absl::Status done = AnswerCases(is_fit, options, *tried, &runner, &report); !done.ok())
    return done;
  const auto ended = [](const proto::ScriptCase& found) { return found.rows_size() > 0; };
  if (runner.stop().received() &&
      std::none_of(report.cases().begin(), report.cases().end(), ended)) {
    PrintError(StrCat(report.command(), ": no run had ended when it was interrupted"));
    return runner.stop().exit_status();
  }
  report.set_runs(runner.made());
  report.set_from_cache(runner.from_cache());
  report.set_stopped_by(std::string(runner.stop().name()));
  report.set_seconds(
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  const absl::Status printed = PrintAnswer(report, options.json, [&] {
    return is_fit ? RenderScriptFit(report) : RenderScriptSweep(report);
  });
  if (!printed.ok()) return printed;
  if (runner.stop().received()) return runner.stop().exit_status();
  return IsGoodAnswer(is_fit, report) ? kExitAnswered : kExitBad;
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

// memreplay fit script and memreplay sweep script
#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "cli/answer_file.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "cli/record_flags.h"
#include "cli/replay_flags.h"
#include "cli/report_each.h"
#include "cli/script_runs.h"
#include "report/text/render_script.h"
#include "report/words/render_json.h"
#include "report/words/version.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr char kFitScriptDescription[] =
    "Runs a PyTorch program on an imagined card, again and again, and finds the largest value\n"
    "of one of its arguments for which memory does not run out. --KEY=? names the argument: the\n"
    "program gets --KEY=N at its end, or N in the place of each ? in ARGUMENTS. What is between\n"
    "the largest value that fits and the smallest that does not is tried, several at once.\n"
    "\n"
    "Runs are kept: the same program, arguments, card and PyTorch are not run twice. A change of\n"
    "a Python file that the program imports is seen, one of its data is not (--no-cache).\n"
    "\n"
    "Exit status 1: no value fits on some card.";

constexpr char kSweepScriptDescription[] =
    "Runs a PyTorch program on imagined cards with several values of one of its arguments, and\n"
    "ranks them: those that fit first, by peak reserved memory. --KEY=A,B,C names the argument\n"
    "and its values; --card and --conf may be given several times, and every combination is run.\n"
    "\n"
    "Runs are kept, as of fit script.\n"
    "\n"
    "Exit status 1: memory runs out in every run.";

constexpr int64_t kMostValue = int64_t{1} << 20;  // value, unless --most says another

struct ScriptFlags {
  RecordOptions run;
  std::vector<std::string> cards;
  std::vector<std::string> confs;
  std::optional<int64_t> step;
  std::optional<int64_t> most;
  std::optional<int64_t> jobs;
  bool no_cache = false;
  bool json = false;
  ScriptKey key;
  std::vector<int64_t> values;  // of sweep
};

// Takes --KEY=? or --KEY=A,B,C, which is no flag of ours, out of the words before the program.
absl::StatusOr<std::vector<std::string>> TakeKey(absl::Span<const std::string> args, bool is_fit,
                                                 ScriptFlags* options) {
  std::vector<std::string> rest;
  bool of_program = false;
  for (const std::string& word : args) {
    of_program = of_program || word == "--";
    const size_t equals = word.find('=');
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    const bool is_key = !of_program && word.substr(0, 2) == "--" && equals != std::string::npos &&
                        (is_fit ? value == "?"
                                : !value.empty() && value.find(',') != std::string::npos &&
                                      value.find_first_not_of("0123456789,") == std::string::npos);
    if (!is_key) {
      rest.push_back(word);
      continue;
    }
    if (!options->key.name.empty()) {
      return absl::InvalidArgumentError(StrCat("expected one argument with values, found ",
                                               options->key.name, " and ", word.substr(0, equals)));
    }
    options->key.name = word.substr(0, equals);
    if (is_fit) continue;
    for (const absl::string_view part : absl::StrSplit(value, ',', absl::SkipEmpty())) {
      int64_t number = 0;
      if (!absl::SimpleAtoi(part, &number)) {
        return absl::InvalidArgumentError(StrCat(word, ": expected numbers"));
      }
      options->values.push_back(number);
    }
  }
  if (options->key.name.empty()) {
    return absl::InvalidArgumentError(is_fit ? "expected --KEY=?, as in --batch_size=?"
                                             : "expected --KEY=A,B,C, as in --batch_size=8,16");
  }
  return rest;
}

// Tries values of one case.
class ScriptSearch {
 public:
  ScriptSearch(ScriptRunner* runner, const ScriptFlags& options, RecordOptions base)
      : runner_(runner), options_(options), base_(std::move(base)) {}

  absl::Status Try(const std::vector<int64_t>& values) {
    std::vector<ScriptRun> runs;
    for (const int64_t value : values) {
      if (tried_.count(value) != 0) continue;
      RecordOptions options = base_;
      options.program = options_.key.WordsWith(base_.program, value);
      runs.push_back({std::move(options), value});
    }
    absl::StatusOr<std::vector<proto::ScriptRow>> rows = runner_->Run(runs);
    if (!rows.ok()) return rows.status();
    for (proto::ScriptRow& row : *rows) tried_.emplace(row.value(), std::move(row));
    return absl::OkStatus();
  }

  // The largest multiple of --step that fits, up to --most.
  absl::Status FindLargest() {
    const int64_t step = options_.step.value_or(1);
    const int64_t most = options_.most.value_or(kMostValue) / step;
    const auto count = static_cast<int64_t>(runner_->jobs());
    if (const absl::Status first = Probe({1, std::min<int64_t>(8, most)}, step); !first.ok()) {
      return first;
    }
    bool guess_is_good = true;
    while (fits_ > 0 && fails_ - fits_ > 1 && fits_ < most) {
      const bool any_failed = fails_ <= most;
      const int64_t end = any_failed ? fails_ : most + 1;  // not to be tried any more
      const int64_t gap = end - fits_;
      std::vector<int64_t> next;
      if (guess_is_good) {
        const int64_t guess = std::clamp(Guess(step), fits_ + 1, end - 1);
        next = {guess, guess + 1, guess - 1};
        next.resize(static_cast<size_t>(std::clamp<int64_t>(count, 1, 3)));
      } else {
        for (int64_t i = 1; i <= count; ++i) next.push_back(fits_ + gap * i / (count + 1));
      }
      for (int64_t& value : next) value = std::clamp(value, fits_ + 1, end - 1);
      std::sort(next.begin(), next.end());
      next.erase(std::unique(next.begin(), next.end()), next.end());
      if (const absl::Status tried = Probe(next, step); !tried.ok()) return tried;
      // While nothing failed there is no gap to halve.
      guess_is_good = !any_failed || 2 * (fails_ - fits_) <= gap;
    }
    return absl::OkStatus();
  }

  int64_t largest(int64_t step) const { return fits_ * step; }
  std::map<int64_t, proto::ScriptRow>& tried() { return tried_; }

 private:
  absl::Status Probe(std::vector<int64_t> units, int64_t step) {
    for (int64_t& unit : units) unit *= step;
    if (const absl::Status tried = Try(units); !tried.ok()) return tried;
    fits_ = 0;
    fails_ = kNone;
    for (const auto& [value, row] : tried_) {
      if (!row.fits()) fails_ = std::min(fails_, value / step);
    }
    for (const auto& [value, row] : tried_) {
      if (row.fits() && value / step < fails_) fits_ = value / step;
    }
    return absl::OkStatus();
  }

  // Where a line through the two largest that fit meets the end of the card.
  int64_t Guess(int64_t step) const {
    const proto::ScriptRow* last = nullptr;
    const proto::ScriptRow* other = nullptr;
    for (const auto& [value, row] : tried_) {
      if (!row.fits() || value / step > fits_) continue;
      other = last;
      last = &row;
    }
    if (other == nullptr) return fits_ * 8;
    const int64_t more = last->peak_reserved() - other->peak_reserved();
    if (more <= 0) return fits_ * 8;
    const double per_value =
        static_cast<double>(more) / static_cast<double>(last->value() - other->value());
    const double guess =
        (static_cast<double>(last->value()) + static_cast<double>(last->spare()) / per_value) /
        static_cast<double>(step);
    return static_cast<int64_t>(std::min(guess, static_cast<double>(fits_) * 64));
  }

  static constexpr int64_t kNone = int64_t{1} << 40;

  ScriptRunner* runner_;
  const ScriptFlags& options_;
  RecordOptions base_;
  std::map<int64_t, proto::ScriptRow> tried_;
  int64_t fits_ = 0;       // in steps
  int64_t fails_ = kNone;  // the smallest that does
};

absl::Status AnswerCases(bool is_fit, const ScriptFlags& options, proto::ScriptReport* report) {
  ScriptRunner runner(static_cast<size_t>(options.jobs.value_or(0)), !options.no_cache);
  const std::vector<std::string> confs =
      options.confs.empty() ? std::vector<std::string>{""} : options.confs;
  for (const std::string& card : options.cards) {
    for (const std::string& conf : confs) {
      const Progress progress(StrCat("running ", options.run.program[0], " on ", card));
      RecordOptions base = options.run;
      base.card = card;
      if (!options.confs.empty()) base.environment["PYTORCH_CUDA_ALLOC_CONF"] = conf;
      ScriptSearch search(&runner, options, std::move(base));
      const absl::Status done = is_fit ? search.FindLargest() : search.Try(options.values);
      if (!done.ok()) return done;
      proto::ScriptCase& found = *report->add_cases();
      found.set_card(card);
      found.set_conf(conf);
      if (is_fit) found.set_largest(search.largest(options.step.value_or(1)));
      for (auto& [value, row] : search.tried()) *found.add_rows() = std::move(row);
    }
  }
  report->set_runs(runner.made());
  report->set_from_cache(runner.from_cache());
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

absl::StatusOr<int> RunScript(bool is_fit, absl::Span<const std::string> args) {
  ScriptFlags options;
  FlagSet flags(is_fit ? "fit script --KEY=? [flags] -- PROGRAM [ARGUMENTS]"
                       : "sweep script --KEY=A,B,C [flags] -- PROGRAM [ARGUMENTS]",
                is_fit ? kFitScriptDescription : kSweepScriptDescription);
  flags.AddTexts("card", "NAME", &options.cards,
                 "a card to imagine, may be given several times; record --card list prints them");
  flags.AddTexts("conf", "CONF", &options.confs,
                 "PYTORCH_CUDA_ALLOC_CONF of the program; may be given several times");
  if (is_fit) {
    flags.AddNumber("step", "N", &options.step, "try multiples of N only");
    flags.AddNumber("most", "N", &options.most, "try no larger value; 1048576 if not given");
  }
  AddRecordFlags(&options.run, &flags);
  AddJobs(&flags, &options.jobs);
  flags.AddSwitch("no-cache", &options.no_cache, "run everything anew");
  AddJsonFlag(&options.json, &flags);
  const auto end = std::find(args.begin(), args.end(), "--");
  const auto is_help = [](const std::string& word) { return word == "--help" || word == "-h"; };
  if (std::any_of(args.begin(), end, is_help)) return PrintHelp(flags.Help());
  absl::StatusOr<std::vector<std::string>> rest = TakeKey(args, is_fit, &options);
  if (!rest.ok()) return rest.status();
  absl::StatusOr<std::vector<std::string>> program = flags.ParseLeading(*rest);
  if (!program.ok()) return program.status();
  options.run.program = *std::move(program);
  if (options.cards.empty()) return absl::InvalidArgumentError("no --card NAME given");
  if (options.step.value_or(1) < 1 ||
      options.most.value_or(kMostValue) < options.step.value_or(1)) {
    return absl::InvalidArgumentError("--step, --most: expected at least 1, and a step up to most");
  }
  if (options.jobs.value_or(1) < 1) {
    return absl::InvalidArgumentError(StrCat("--jobs: expected at least 1, found ", *options.jobs));
  }
  options.run.card = options.cards[0];
  if (const absl::Status call = CheckRecordCall(options.run); !call.ok()) return call;

  proto::ScriptReport report;
  report.set_schema_version(kReportSchemaVersion);
  report.set_tool_version(kVersion);
  report.set_command(is_fit ? "fit script" : "sweep script");
  for (const std::string& word : options.run.program) report.add_program(word);
  report.set_key(options.key.name);
  const auto began = std::chrono::steady_clock::now();
  if (const absl::Status done = AnswerCases(is_fit, options, &report); !done.ok()) return done;
  report.set_seconds(
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  const absl::Status printed = Print(options.json ? RenderJson(report, JsonLayout::kIndented)
                                     : is_fit     ? RenderScriptFit(report)
                                                  : RenderScriptSweep(report));
  if (!printed.ok()) return printed;
  return IsGoodAnswer(is_fit, report) ? kExitAnswered : kExitBad;
}

}  // namespace

absl::StatusOr<int> RunFitScript(absl::Span<const std::string> args) {
  const absl::StatusOr<int> status = RunScript(true, args);
  return status.ok() ? status : InCommand("fit script", status.status());
}

absl::StatusOr<int> RunSweepScript(absl::Span<const std::string> args) {
  const absl::StatusOr<int> status = RunScript(false, args);
  return status.ok() ? status : InCommand("sweep script", status.status());
}

}  // namespace memreplay

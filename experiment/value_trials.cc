#include "experiment/value_trials.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/types/span.h"
#include "experiment/script_search.h"
#include "report/words/new_report.h"
#include "report/words/sizes.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr int64_t kUsualMax = int64_t{1} << 20;  // value, unless --max says another

double ValueOf(const Decimal& number) {
  return static_cast<double>(number.units) / static_cast<double>(number.scale);
}

// Returns whether an argument is a share of something, by its name.
bool IsShare(std::string_view name) {
  return name.find("utilization") != std::string_view::npos ||
         name.find("fraction") != std::string_view::npos;
}

// The trials of one case.
class CaseTrials {
 public:
  // `script` has the card and the settings of the case.
  CaseTrials(const ValueQuestion& question, RecordOptions script, ScriptRunner* runner)
      : question_(question), script_(std::move(script)), runner_(*runner) {}

  // Adds the rows of the runs that ended, even if others failed. Errors: those of the runs.

  absl::Status Run(proto::ScriptCase* found) {
    ScriptSearch search([&](absl::Span<const int64_t> values) { return RunValues(values); },
                        runner_.at_once());
    absl::Status done;
    if (question_.finds_largest) {
      const absl::StatusOr<int64_t> largest =
          search.FindLargest(question_.values.step, question_.values.max);
      if (largest.ok()) found->set_largest(value_of(*largest));
      done = largest.status();
    } else {
      done = search.Try(question_.values.listed);
    }
    for (const auto& [value, row] : ended_) *found->add_rows() = row;
    if (!done.ok() && !runner_.stopped_by().empty()) {
      found->set_unfinished(true);
      if (question_.finds_largest) SetBounds(found);
      return absl::OkStatus();
    }
    return done;
  }

 private:
  absl::StatusOr<std::vector<proto::ScriptRow>> RunValues(absl::Span<const int64_t> values) {
    std::vector<ScriptRun> runs;
    for (const int64_t units : values) {
      ScriptRun& run = runs.emplace_back();
      run.options = script_;
      run.name = FormatValue(value_of(units));
      run.options.program = question_.key.WordsWith(script_.program, run.name);
    }
    std::vector<proto::ScriptRow> rows;
    absl::Status failed;
    const ScriptRunner::Answers answers = runner_.Run(runs);
    for (size_t i = 0; i < answers.size(); ++i) {
      if (!answers[i].ok()) {
        failed.Update(answers[i].status());
        continue;
      }
      proto::ScriptRow& row = rows.emplace_back(ScriptRowOf(answers[i]->report));
      row.set_value(value_of(values[i]));
      row.set_cached(answers[i]->cached);
      row.set_too_small(SaysToRaise(row.refusal(), question_.key.name));
      ended_[values[i]] = row;
    }
    if (!failed.ok()) return failed;
    return rows;
  }

  // Sets what an interrupted search knows.

  void SetBounds(proto::ScriptCase* found) const {
    for (const auto& [units, row] : ended_) {
      if (row.fits()) {
        found->set_largest(row.value());
      } else if (!row.too_small()) {
        found->set_below(row.value());
        return;
      }
    }
  }

  double value_of(int64_t units) const { return ValueOf({units, question_.values.scale}); }

  const ValueQuestion& question_;
  const RecordOptions script_;
  ScriptRunner& runner_;
  std::map<int64_t, proto::ScriptRow> ended_;  // by value
};

}  // namespace

std::optional<Decimal> ParseDecimal(std::string_view text) {
  Decimal number;
  const size_t point = std::min(text.find('.'), text.size());
  std::string digits(text.substr(0, point));
  if (point < text.size()) {
    const std::string_view decimals = text.substr(point + 1);
    if (decimals.empty() || decimals.size() > Decimal::kMaxDecimals) return std::nullopt;
    for (size_t i = 0; i < decimals.size(); ++i) number.scale *= 10;
    digits += decimals;
  }
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos ||
      !absl::SimpleAtoi(digits, &number.units)) {
    return std::nullopt;
  }
  return number;
}

absl::StatusOr<TriedValues> TriedValuesOf(std::string_view name, std::optional<Decimal> given_step,
                                          std::optional<Decimal> given_max,
                                          const std::vector<Decimal>& listed) {
  const Decimal step = given_step.value_or(IsShare(name) ? Decimal{1, 100} : Decimal{1, 1});
  const Decimal max = given_max.value_or(Decimal{step.units < step.scale ? 1 : kUsualMax, 1});
  TriedValues values;
  values.scale = std::max(step.scale, max.scale);
  for (const Decimal& each : listed) values.scale = std::max(values.scale, each.scale);
  bool in_range = true;
  const auto units = [&](const Decimal& number) {
    in_range = in_range && number.units <= ScriptSearch::kMaxValue / values.scale * number.scale;
    return in_range ? number.units * (values.scale / number.scale) : 0;
  };
  values.step = units(step);
  values.max = units(max);
  for (const Decimal& each : listed) values.listed.push_back(units(each));
  if (!in_range || values.step < 1 || values.max < values.step) {
    return absl::InvalidArgumentError(StrCat(
        "--step, --max: expected 0 < step <= max <= ", ScriptSearch::kMaxValue / values.scale,
        " (by default, step is ", FormatValue(ValueOf(step)), " and max ",
        FormatValue(ValueOf(max)), ")"));
  }
  return values;
}

absl::StatusOr<proto::ScriptReport> TryValues(const ValueQuestion& question, ScriptRunner* runner,
                                              ProgressSink* progress) {
  proto::ScriptReport report;
  SetVersions(&report);
  report.set_command(question.finds_largest ? "fit script" : "sweep script");
  for (const std::string& word : question.script.program) report.add_program(word);
  report.set_key(question.key.name);
  const std::vector<std::string> confs =
      question.confs.empty() ? std::vector<std::string>{""} : question.confs;
  bool has_rows = false;
  for (size_t i = 0; i < question.cards.size() * confs.size(); ++i) {
    if (!runner->stopped_by().empty()) break;
    proto::ScriptCase& found = *report.add_cases();
    found.set_card(question.cards[i / confs.size()]);
    found.set_conf(confs[i % confs.size()]);
    if (progress != nullptr) {
      progress->SetActivity(StrCat("running ", question.script.program[0], " on ", found.card()));
    }
    RecordOptions script = question.script;
    script.card = found.card();
    if (!question.confs.empty()) script.environment["PYTORCH_CUDA_ALLOC_CONF"] = found.conf();
    RETURN_IF_ERROR(CaseTrials(question, std::move(script), runner).Run(&found));
    has_rows = has_rows || !found.rows().empty();
  }
  if (!has_rows && !runner->stopped_by().empty()) return absl::CancelledError("interrupted");
  report.set_stopped_by(std::string(runner->stopped_by()));
  runner->AddCounts(&report);
  return report;
}

bool ValuesFit(const ValueQuestion& question, const proto::ScriptReport& report) {
  if (question.finds_largest) {
    return absl::c_all_of(report.cases(),
                          [](const proto::ScriptCase& found) { return found.largest() > 0; });
  }
  return absl::c_any_of(report.cases(), [](const auto& found) {
    return absl::c_any_of(found.rows(), [](const proto::ScriptRow& row) { return row.fits(); });
  });
}

}  // namespace memreplay

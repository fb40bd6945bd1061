#include "experiment/changed_runs.h"

#include <algorithm>
#include <utility>

#include "experiment/advised_run.h"
#include "experiment/script_search.h"
#include "record/card/model/options.h"
#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// Returns the same run for each other rank of the job, if it is one of `group` ranks and no rank
// was chosen.
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

proto::AdvisedRun AdvisedRunOf(const absl::StatusOr<ScriptRunner::Answer>& answer) {
  proto::AdvisedRun run;
  if (answer.ok()) {
    run = answer->report.advised();
    // Its figures are those of a part of the run.
    if (const proto::ScriptRow row = ScriptRowOf(answer->report); !row.fits()) {
      run.set_error(row.refusal().empty()
                        ? StrCat("memory runs out even on a GPU of ", FormatSize(card::kMaxBytes))
                        : StrCat("memory is too little: ", row.refusal()));
    }
  } else if (absl::IsCancelled(answer.status())) {
    run.set_interrupted(true);
  } else {
    run.set_error(std::string(answer.status().message()));
  }
  return run;
}

}  // namespace

ChangedRuns::ChangedRuns(const RecordOptions& script, ScriptKey key, int64_t value,
                         ScriptRunner* runner, ProgressSink* progress)
    : given_(script), base_(script), key_(std::move(key)), runner_(*runner), progress_(progress) {
  if (value > 0) base_.program = key_.WordsWith(script.program, StrCat(value));
}

void ChangedRuns::Show(std::string_view activity) {
  if (progress_ != nullptr) progress_->SetActivity(activity);
}

ScriptRun ChangedRuns::RunOf(const Remedies& remedies) const {
  ScriptRun run{.options = base_, .name = "", .is_studied = true};
  run.options.card_options[std::string(card::kCapacity.variable)] = StrCat(card::kMaxBytes);
  run.options.remedies = remedies;
  run.options.survey = remedies.empty();
  return run;
}

std::vector<proto::AdvisedRun> ChangedRuns::RunOneRank(absl::Span<const ScriptRun> runs) {
  std::vector<proto::AdvisedRun> advised;
  for (const auto& answer : runner_.Run(runs)) advised.push_back(AdvisedRunOf(answer));
  return advised;
}

std::vector<proto::AdvisedRun> ChangedRuns::RunRanks(absl::Span<const ScriptRun> runs) {
  std::vector<proto::AdvisedRun> advised = RunOneRank(runs);
  std::vector<ScriptRun> others;
  std::vector<proto::AdvisedRun*> jobs;  // of each of the others
  for (size_t i = 0; i < runs.size(); ++i) {
    for (ScriptRun& other : OtherRanks(runs[i], advised[i].group())) {
      others.push_back(std::move(other));
      jobs.push_back(&advised[i]);
    }
  }
  if (others.empty()) return advised;
  has_ranks_ = true;
  const std::vector<proto::AdvisedRun> found = RunOneRank(others);
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i].interrupted()) *jobs[i] = found[i];
    if (!jobs[i]->interrupted()) MergeRank(found[i], jobs[i]);
  }
  return advised;
}

std::vector<proto::AdvisedRun> ChangedRuns::RunEach(absl::Span<const Remedies> remedies) {
  const bool is_unchanged = remedies.size() == 1 && remedies[0].empty();
  const std::string changes = FormatCount(static_cast<int64_t>(remedies.size()), "change");
  Show(StrCat("running ", base_.program[0], is_unchanged ? "" : " with ",
              is_unchanged ? "" : changes));
  std::vector<ScriptRun> runs;
  for (const Remedies& names : remedies) runs.push_back(RunOf(names));
  return RunRanks(runs);
}

std::vector<proto::AdvisedRun> ChangedRuns::RunValues(const Remedies& remedies,
                                                      absl::Span<const int64_t> values) {
  Show(StrCat("looking for the largest ", key_.name));
  std::vector<ScriptRun> runs;
  for (const int64_t value : values) {
    ScriptRun& run = runs.emplace_back(RunOf(remedies));
    run.name = StrCat(value);
    run.options.program = key_.WordsWith(given_.program, run.name);
  }
  return RunRanks(runs);
}

absl::StatusOr<bool> ChangedRuns::Fits(const Remedies& remedies, const std::string& conf) {
  ScriptRun run{base_, "", false};
  run.options.remedies = remedies;
  if (!conf.empty()) run.options.environment["PYTORCH_CUDA_ALLOC_CONF"] = conf;
  int group = 0;
  const auto fits = [&](const std::vector<ScriptRun>& runs) -> absl::StatusOr<bool> {
    for (const auto& answer : runner_.Run(runs)) {
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
}

}  // namespace memreplay

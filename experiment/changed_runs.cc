#include "experiment/changed_runs.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "experiment/advised_run.h"
#include "experiment/patch.h"
#include "experiment/script_search.h"
#include "record/card/model/options.h"
#include "report/words/sizes.h"
#include "trace/value/status_macros.h"
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

absl::StatusOr<MadeChange> ChangedRuns::Make(const Remedies& remedies) const {
  MadeChange made;
  for (const std::string& name : remedies) {
    const auto proposal = absl::c_find_if(
        proposals_, [&](const proto::Proposal& each) { return each.name() == name; });
    if (proposal == proposals_.end() ||
        (proposal->edits().empty() && proposal->arguments().empty())) {
      made.remedies.push_back(name);
      continue;
    }
    made.edits.insert(made.edits.end(), proposal->edits().begin(), proposal->edits().end());
    made.arguments.insert(made.arguments.end(), proposal->arguments().begin(),
                          proposal->arguments().end());
  }
  ASSIGN_OR_RETURN(made.edits, MergeEdits(std::move(made.edits)));
  return made;
}

absl::StatusOr<ScriptRun> ChangedRuns::RunOf(const Remedies& remedies,
                                             const std::vector<std::string>& program) const {
  ASSIGN_OR_RETURN(MadeChange made, Make(remedies));
  ScriptRun run{.options = base_, .name = "", .is_studied = true};
  run.options.program = program;
  run.options.program.insert(run.options.program.end(), made.arguments.begin(),
                             made.arguments.end());
  run.options.edits = std::move(made.edits);
  run.options.remedies = std::move(made.remedies);
  return run;
}

std::vector<proto::AdvisedRun> ChangedRuns::RunStudied(absl::Span<const Wanted> wanted) {
  std::vector<proto::AdvisedRun> advised(wanted.size());
  std::vector<ScriptRun> runs, others;
  std::vector<proto::AdvisedRun*> run_of, other_of;  // of each: what it is a run of
  for (size_t i = 0; i < wanted.size(); ++i) {
    absl::StatusOr<ScriptRun> run = RunOf(wanted[i].remedies, wanted[i].program);
    if (!run.ok()) {
      advised[i].set_error(std::string(run.status().message()));
      continue;
    }
    run->name = wanted[i].name;
    run->options.card_options[std::string(card::kCapacity.variable)] = StrCat(card::kMaxBytes);
    run->options.survey = wanted[i].remedies.empty();
    runs.push_back(*std::move(run));
    run_of.push_back(&advised[i]);
  }
  ScriptRunner::Answers answers = runner_.Run(runs, progress_);
  for (size_t i = 0; i < runs.size(); ++i) {
    *run_of[i] = AdvisedRunOf(answers[i]);
    for (ScriptRun& other : OtherRanks(runs[i], run_of[i]->group())) {
      others.push_back(std::move(other));
      other_of.push_back(run_of[i]);
    }
  }
  if (others.empty()) return advised;
  has_ranks_ = true;
  answers = runner_.Run(others, progress_);
  for (size_t i = 0; i < others.size(); ++i) {
    const proto::AdvisedRun found = AdvisedRunOf(answers[i]);
    if (found.interrupted()) *other_of[i] = found;
    if (!other_of[i]->interrupted()) MergeRank(found, other_of[i]);
  }
  return advised;
}

std::vector<proto::AdvisedRun> ChangedRuns::RunEach(absl::Span<const Remedies> remedies) {
  const bool is_unchanged = remedies.size() == 1 && remedies[0].empty();
  const std::string changes = FormatCount(static_cast<int64_t>(remedies.size()), "change");
  Show(StrCat("running ", base_.program[0], is_unchanged ? "" : " with ",
              is_unchanged ? "" : changes));
  std::vector<Wanted> wanted;
  for (const Remedies& names : remedies) wanted.push_back({names, base_.program, ""});
  return RunStudied(wanted);
}

std::vector<proto::AdvisedRun> ChangedRuns::RunValues(const Remedies& remedies,
                                                      absl::Span<const int64_t> values) {
  Show(StrCat("looking for the largest ", key_.name));
  std::vector<Wanted> wanted;
  for (const int64_t value : values) {
    wanted.push_back({remedies, key_.WordsWith(given_.program, StrCat(value)), StrCat(value)});
  }
  return RunStudied(wanted);
}

absl::StatusOr<proto::ScriptRow> ChangedRuns::RunOnCard(const Remedies& remedies,
                                                        const std::string& conf) {
  ASSIGN_OR_RETURN(ScriptRun run, RunOf(remedies, base_.program));
  run.is_studied = false;
  if (!conf.empty()) run.options.environment["PYTORCH_CUDA_ALLOC_CONF"] = conf;
  int group = 0;
  proto::ScriptRow worst;
  const auto run_all = [&](const std::vector<ScriptRun>& runs) -> absl::Status {
    for (const auto& answer : runner_.Run(runs, progress_)) {
      if (!answer.ok()) return answer.status();
      proto::ScriptRow row = ScriptRowOf(answer->report);
      for (const proto::RecordedProcess& process : answer->report.processes()) {
        group = std::max(group, process.group());
      }
      const bool is_worse = row.peak_reserved() >= worst.peak_reserved() || !row.fits();
      if (is_worse) worst = std::move(row);
      if (!worst.fits()) return absl::OkStatus();
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(run_all({run}));
  if (worst.fits()) RETURN_IF_ERROR(run_all(OtherRanks(run, group)));
  return worst;
}

}  // namespace memreplay

#include "experiment/changed_runs.h"

#include <algorithm>
#include <utility>

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
    const auto proposal =
        std::find_if(proposals_.begin(), proposals_.end(),
                     [&](const proto::Proposal& each) { return each.name() == name; });
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

absl::StatusOr<ScriptRun> ChangedRuns::StudiedRunOf(const Remedies& remedies,
                                                    const std::vector<std::string>& program) const {
  ASSIGN_OR_RETURN(ScriptRun run, RunOf(remedies, program));
  run.options.card_options[std::string(card::kCapacity.variable)] = StrCat(card::kMaxBytes);
  run.options.survey = remedies.empty();
  return run;
}

std::vector<proto::AdvisedRun> ChangedRuns::RunOneRank(absl::Span<const ScriptRun> runs) {
  std::vector<proto::AdvisedRun> advised;
  for (const auto& answer : runner_.Run(runs, progress_)) advised.push_back(AdvisedRunOf(answer));
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

std::vector<proto::AdvisedRun> ChangedRuns::RunMade(std::vector<absl::StatusOr<ScriptRun>> made) {
  std::vector<ScriptRun> runs;
  for (const absl::StatusOr<ScriptRun>& run : made) {
    if (run.ok()) runs.push_back(*run);
  }
  std::vector<proto::AdvisedRun> advised(made.size());
  std::vector<proto::AdvisedRun> found = RunRanks(runs);
  auto next = found.begin();
  for (size_t i = 0; i < made.size(); ++i) {
    if (made[i].ok()) {
      advised[i] = std::move(*next++);
    } else {
      advised[i].set_error(std::string(made[i].status().message()));
    }
  }
  return advised;
}

std::vector<proto::AdvisedRun> ChangedRuns::RunEach(absl::Span<const Remedies> remedies) {
  const bool is_unchanged = remedies.size() == 1 && remedies[0].empty();
  const std::string changes = FormatCount(static_cast<int64_t>(remedies.size()), "change");
  Show(StrCat("running ", base_.program[0], is_unchanged ? "" : " with ",
              is_unchanged ? "" : changes));
  std::vector<absl::StatusOr<ScriptRun>> runs;
  for (const Remedies& names : remedies) runs.push_back(StudiedRunOf(names, base_.program));
  return RunMade(std::move(runs));
}

std::vector<proto::AdvisedRun> ChangedRuns::RunValues(const Remedies& remedies,
                                                      absl::Span<const int64_t> values) {
  Show(StrCat("looking for the largest ", key_.name));
  std::vector<absl::StatusOr<ScriptRun>> runs;
  for (const int64_t value : values) {
    const std::string name = StrCat(value);
    runs.push_back(StudiedRunOf(remedies, key_.WordsWith(given_.program, name)));
    if (runs.back().ok()) runs.back()->name = name;
  }
  return RunMade(std::move(runs));
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

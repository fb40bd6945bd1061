#include "experiment/advised_run.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "report/ask/file_report.h"
#include "report/ask/replay.h"
#include "report/device/device_report.h"
#include "report/words/record_faults.h"
#include "sim/study/study.h"
#include "sim/whatif/smallest_capacity.h"
#include "sim/whatif/sweep.h"
#include "sim/workload/lifetimes.h"
#include "trace/value/bounded.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"
#include "trace/value/units.h"

namespace memreplay {
namespace {

constexpr char kExpandable[] = "expandable_segments:True";

// Returns the smallest device memory with which, and with all above, the recording survives under
// `conf`; 0 if none is known.
proto::AdvisedRun::Fit FitUnder(const Study& study, const std::string& conf, Bytes least) {
  proto::AdvisedRun::Fit fit;
  fit.set_conf(conf);
  const absl::StatusOr<ReplaySettings> settings =
      SettingsFor(study.settings(), {conf, study.settings().fraction});
  if (!settings.ok()) return fit;
  const SweepContext context = {study, *settings, StartPolicy::kFresh};
  const SmallestCapacity found =
      FindSmallestCapacity(context, *settings, least, MaxSizes(study.schedule().requests().size()));
  fit.set_smallest(found.safe_capacity.value_or(Bytes()).signed_value());
  fit.set_peak_reserved(found.unlimited_peak_reserved.signed_value());
  fit.set_peak_allocated(found.unlimited_peak_allocated.signed_value());
  return fit;
}

// Returns what every run is replayed under: the script's own settings, and the same with
// expandable segments. Keys that conflict with these are left to the script.
std::vector<std::string> ConfsOf(const Study& study) {
  const std::string& own = study.settings().config.conf;
  std::vector<std::string> confs = {own};
  const std::vector<std::string> usual = UsualConfs(*study.settings().torch.profile);
  const bool has_them = absl::c_find(usual, kExpandable) != usual.end();
  if (has_them && own.find("expandable_segments") == own.npos &&
      own.find("max_split_size") == own.npos) {
    confs.push_back(own.empty() ? kExpandable : StrCat(own, ",", kExpandable));
  }
  return confs;
}

// Returns the best settings of a search if they beat all of ConfsOf(), else "".
std::string BestConf(const Study& study) {
  const SweepContext context = {study, study.settings(), StartPolicy::kFresh};
  const std::vector<SweepRow> rows = SearchConf(context);
  if (rows.empty() || !rows[0].refused.empty()) return "";
  const std::vector<std::string> usual = ConfsOf(study);
  for (const SweepRow& row : rows) {
    const bool is_usual = absl::c_find(usual, row.conf) != usual.end();
    if (is_usual && row.peak_reserved.value() * 49 <= rows[0].peak_reserved.value() * 50) return "";
  }
  return rows[0].conf;
}

// Returns the maximum that was live at once of memory that no change to activations saves.
int64_t BoundOf(const proto::Categories& categories) {
  int64_t bound = 0;
  for (const proto::Categories::Phase& phase : categories.phases()) {
    int64_t kept = 0;
    for (const char* category : {"parameter", "buffer", "gradient", "optimizer_state"}) {
      const auto found = phase.bytes_by_category().find(category);
      if (found != phase.bytes_by_category().end()) kept += found->second;
    }
    bound = std::max(bound, kept);
  }
  return bound;
}

// Merges the needs of another device into a run; the larger ones count.
void MergeFit(const proto::AdvisedRun::Fit& fit, proto::AdvisedRun* run) {
  for (proto::AdvisedRun::Fit& known : *run->mutable_fits()) {
    if (known.conf() != fit.conf()) continue;
    const bool fails = known.smallest() == 0 || fit.smallest() == 0;
    known.set_smallest(fails ? 0 : std::max(known.smallest(), fit.smallest()));
    known.set_peak_reserved(std::max(known.peak_reserved(), fit.peak_reserved()));
    known.set_peak_allocated(std::max(known.peak_allocated(), fit.peak_allocated()));
    return;
  }
  *run->add_fits() = fit;
}

// Adds what the snapshot of one of a run's processes says: who holds the memory at the peak, and
// the smallest device under the script's own settings, with expandable segments, and, in a run of
// the unchanged script, under the best settings of a search. Errors: ReplayWhatIf()'s.
absl::Status AddProcess(const OpenedFile& snapshot, const proto::RecordedProcess& process,
                        proto::AdvisedRun* run) {
  if (process.has_work()) {
    const proto::Work& known = run->work();
    if (process.work().seconds() * static_cast<double>(known.steps()) >=
        known.seconds() * static_cast<double>(process.work().steps())) {
      *run->mutable_work() = process.work();
    }
    return absl::OkStatus();
  }
  run->set_compiles(run->compiles() || process.has_compilations());
  const bool is_as_it_is = process.met().empty();
  int64_t largest = 0;
  run->set_reserve(process.card().reserve());
  run->set_group(std::max(run->group(), process.group()));
  run->set_launches(BoundedSum(run->launches(), process.card().launches()));
  run->set_pinned(std::max(run->pinned(), process.card().pinned().peak()));
  for (const proto::RecordedCard& card : process.cards()) {
    run->set_peak_reserved(std::max(run->peak_reserved(), card.peak_reserved()));
    run->set_peak_allocated(std::max(run->peak_allocated(), card.peak_allocated()));
    run->set_outside(std::max(run->outside(), card.outside()));
  }
  for (const std::string& name : process.met()) {
    if (absl::c_find(run->met(), name) == run->met().end()) {
      run->add_met(name);
    }
  }
  if (run->proposals().empty()) *run->mutable_proposals() = process.proposals();
  run->mutable_classes()->MergeFrom(process.classes());
  for (const std::unique_ptr<const Study>& study : snapshot.devices) {
    if (study->schedule().requests().empty()) continue;
    const Bytes least = PeakLiveOf(LifetimesOf(study->schedule())).requested;
    for (const std::string& conf : ConfsOf(*study)) MergeFit(FitUnder(*study, conf, least), run);
    if (!is_as_it_is || least.signed_value() <= largest) continue;
    largest = least.signed_value();
    if (const std::string best = BestConf(*study); !best.empty()) {
      MergeFit(FitUnder(*study, best, least), run);
    }
    ASSIGN_OR_RETURN(ReplayAnswer answer, AskReplay(*study, StartPolicy::kRecorded, nullptr));
    answer.report.mutable_sweep();  // BestConf() was one, so the diagnosis proposes none
    *run->mutable_diagnosis() = DiagnosisOf(answer.report);
    run->set_bound(BoundOf(answer.report.categories()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status StudyRun(proto::RecordReport* report) {
  proto::AdvisedRun* const run = report->mutable_advised();
  for (const proto::RecordedProcess& process : report->processes()) {
    ASSIGN_OR_RETURN(const OpenedFile opened, OpenFile(process.snapshot()));
    RETURN_IF_ERROR(AddProcess(opened, process, run));
    if (const std::string late = LateStateText(process.late_state()); !late.empty()) {
      run->add_notes(late);
    }
  }
  return absl::OkStatus();
}

void MergeRank(const proto::AdvisedRun& other, proto::AdvisedRun* run) {
  if (!run->error().empty()) return;
  if (!other.error().empty()) {
    *run = other;
    return;
  }
  run->clear_classes();  // those of the other are unknown
  run->set_peak_reserved(std::max(run->peak_reserved(), other.peak_reserved()));
  run->set_peak_allocated(std::max(run->peak_allocated(), other.peak_allocated()));
  run->set_outside(std::max(run->outside(), other.outside()));
  run->set_pinned(std::max(run->pinned(), other.pinned()));
  run->set_bound(std::max(run->bound(), other.bound()));
  const proto::AdvisedRun own = *run;
  run->clear_fits();
  for (const proto::AdvisedRun::Fit& fit : own.fits()) {
    for (const proto::AdvisedRun::Fit& its : other.fits()) {
      if (its.conf() != fit.conf()) continue;
      *run->add_fits() = fit;
      MergeFit(its, run);
    }
  }
}

}  // namespace memreplay

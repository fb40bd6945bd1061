#include "report/ask/page.h"

#include <utility>

#include "report/answer/build_report.h"
#include "report/answer/inventory.h"
#include "report/answer/page_report.h"
#include "report/answer/unseen.h"
#include "report/ask/oom.h"
#include "report/ask/sweep.h"
#include "report/run/run_data.h"
#include "report/run/run_log.h"
#include "sim/observe/history.h"
#include "sim/recording/sampled_replay.h"
#include "sim/whatif/control.h"
#include "sim/whatif/sweep.h"
#include "sim/whatif/what_if.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

absl::StatusOr<proto::DeviceReport> ReportOwnRun(
    const Schedule& schedule, const ReplaySettings& settings, const WhatIfBasis& basis,
    const DeviceContents& contents, const PageLimits& limits, size_t threads, RunData* data) {
  RunLogObserver log(schedule, settings.as_recorded);
  proto::DeviceReport report;
  if (settings.as_recorded) {
    HistoryObserver history(schedule, HistoryObserver::Clock::kEvents, limits.timeline_buckets);
    ObserverList watchers = {&history, &log};
    const SampledReplay replay = ReplaySampled(schedule, settings, &watchers, true);
    report = ReportReplay(schedule, settings, contents.peaks, replay);
    *report.mutable_inventory() = contents.inventory;
    AddPage(schedule, history,
            replay.fragmentation.has_value() ? &replay.fragmentation->segments : nullptr,
            replay.exact.segments, limits, &report);
    *data = MakeRunData(schedule, log.log(), threads);
    return report;
  }
  HistoryObserver history(schedule, HistoryObserver::Clock::kRequests, limits.timeline_buckets);
  WhatIfOptions options;
  options.fragmentation = true;
  options.keep_segments = true;
  const ReplaySettings on_card = OnRecordedCard(settings, basis.card);
  ObserverList watchers = {&history, &log};
  const absl::StatusOr<WhatIfResult> run = ReplayWhatIf(schedule, on_card, &watchers, options);
  if (!run.ok()) return run.status();
  report = ReportWhatIf(schedule, on_card, contents.peaks, *run);
  *report.mutable_inventory() = contents.inventory;
  AddPage(schedule, history,
          run->fragmentation.has_value() ? &run->fragmentation->segments : nullptr, run->segments,
          limits, &report);
  *data = MakeRunData(schedule, log.log(), threads);
  return report;
}

// The first of the ranking. Error: NotFound if those in force are as good.
absl::StatusOr<ReplaySettings> BestOf(const proto::Sweep& sweep, const ReplaySettings& settings) {
  const proto::SweepRow& current = sweep.current();
  if (sweep.rows().empty() || !sweep.rows(0).refused().empty() ||
      (sweep.rows(0).ooms() >= current.ooms() &&
       sweep.rows(0).peak_reserved_bytes() >= current.peak_reserved_bytes())) {
    return absl::NotFoundError("nothing better");
  }
  const proto::SweepRow& best = sweep.rows(0);
  Candidate candidate;
  candidate.conf = best.conf();
  if (best.memory_fraction() > 0) candidate.fraction = best.memory_fraction();
  absl::StatusOr<ReplaySettings> found = SettingsFor(settings, candidate);
  if (found.ok()) found->as_recorded = false;
  return found;
}

}  // namespace

absl::StatusOr<proto::DeviceReport> AskPage(const Schedule& schedule,
                                            const ReplaySettings& settings,
                                            std::vector<ReplaySettings> others, bool search,
                                            size_t threads, RunData* data, ProgressSink* progress) {
  const int device = schedule.device();
  progress->SetActivity(StrCat("replaying device ", device));
  const DeviceContents contents = DescribeContents(schedule.trace(), schedule.device_index());
  const PageLimits limits;
  WhatIfBasis basis;
  const bool is_what_if = !settings.as_recorded || !others.empty() || search;
  if (is_what_if) {
    absl::StatusOr<WhatIfBasis> found = FindBasis(schedule, settings);
    if (!found.ok()) return found.status();
    basis = *std::move(found);
  }
  absl::StatusOr<proto::DeviceReport> report =
      ReportOwnRun(schedule, settings, basis, contents, limits, threads, data);
  if (!report.ok()) return report;
  if (is_what_if) {
    AddControl(basis, settings.order, &*report);
    AddUnseen(schedule, &*report);
  }
  if (report->ooms() > 0 || report->recorded().ooms() > 0) {
    progress->SetActivity(StrCat("examining device ", device));
    absl::StatusOr<proto::OutOfMemory> oom =
        WhyOutOfMemory(schedule, OnRecordedCard(settings, basis.card), {});
    if (!oom.ok()) return oom.status();
    *report->mutable_oom() = *std::move(oom);
  }
  const size_t given = others.size();
  if (search) {
    progress->SetActivity(StrCat("searching settings for device ", device));
    SweepQuestion question;
    question.threads = threads;
    const absl::StatusOr<proto::DeviceReport> sweep = AskSweep(schedule, settings, question);
    if (!sweep.ok()) return sweep.status();
    *report->mutable_sweep() = sweep->sweep();
    const absl::StatusOr<ReplaySettings> best =
        BestOf(sweep->sweep(), OnRecordedCard(settings, basis.card));
    if (best.ok()) others.push_back(*best);
  }
  for (const ReplaySettings& other : others) {
    progress->SetActivity(StrCat("replaying device ", device, " under ", other.config.conf));
    HistoryObserver history(schedule, HistoryObserver::Clock::kRequests, limits.timeline_buckets);
    WhatIfOptions options;
    options.fragmentation = true;
    const ReplaySettings on_card = OnRecordedCard(other, basis.card);
    const absl::StatusOr<WhatIfResult> run = ReplayWhatIf(schedule, on_card, &history, options);
    if (!run.ok()) return run.status();
    AddOther(history, limits, ReportWhatIf(schedule, on_card, contents.peaks, *run), &*report);
  }
  if (others.size() > given) report->mutable_page()->mutable_others()->rbegin()->set_found(true);
  return report;
}

}  // namespace memreplay

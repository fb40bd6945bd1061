#include "report/ask/page.h"

#include <future>
#include <optional>
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

// What a page shows of one device.
struct Shown {
  const Schedule& schedule;
  const DeviceContents& contents;
  std::shared_future<Unsimulated> unsimulated;
  size_t threads;
  PageLimits limits = {};
};

// A recording as it happened. `exact`: what what-ifs about it stand on.
proto::DeviceReport ReportRecordedRun(const Shown& shown, const ReplaySettings& settings,
                                      RunData* data, ExactReplayResult* exact) {
  const Schedule& schedule = shown.schedule;
  RunLogObserver log(schedule, /*positions_are_events=*/true);
  HistoryObserver history(schedule, HistoryObserver::Clock::kEvents, shown.limits.timeline_buckets);
  ObserversTogether watchers(history, log);
  SampledReplay replay = ReplaySampled(schedule, settings, &watchers, true);
  proto::DeviceReport report = ReportReplay(schedule, settings, shown.contents.peaks, replay);
  *report.mutable_inventory() = shown.contents.inventory;
  AddPage(schedule, shown.unsimulated.get(), history,
          replay.fragmentation.has_value() ? &replay.fragmentation->segments : nullptr,
          replay.exact.segments, shown.limits, &report);
  *data = MakeRunData(schedule, log.log(), shown.threads);
  *exact = std::move(replay.exact);
  return report;
}

absl::StatusOr<proto::DeviceReport> ReportWhatIfRun(const Shown& shown,
                                                    const ReplaySettings& on_card, RunData* data) {
  const Schedule& schedule = shown.schedule;
  RunLogObserver log(schedule, /*positions_are_events=*/false);
  HistoryObserver history(schedule, HistoryObserver::Clock::kRequests,
                          shown.limits.timeline_buckets);
  WhatIfOptions options;
  options.fragmentation = true;
  options.keep_segments = true;
  ObserversTogether watchers(history, log);
  const absl::StatusOr<WhatIfResult> run = ReplayWhatIf(schedule, on_card, &watchers, options);
  if (!run.ok()) return run.status();
  proto::DeviceReport report = ReportWhatIf(schedule, on_card, shown.contents.peaks, *run);
  *report.mutable_inventory() = shown.contents.inventory;
  AddPage(schedule, shown.unsimulated.get(), history,
          run->fragmentation.has_value() ? &run->fragmentation->segments : nullptr, run->segments,
          shown.limits, &report);
  *data = MakeRunData(schedule, log.log(), shown.threads);
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
  std::shared_future<Unsimulated> unsimulated =
      std::async(threads > 1 ? std::launch::async : std::launch::deferred,
                 [&] { return TellUnsimulated(schedule); });
  const DeviceContents contents = DescribeContents(schedule);
  const Shown shown = {schedule, contents, std::move(unsimulated), threads};
  absl::StatusOr<proto::DeviceReport> report = proto::DeviceReport();
  std::optional<ExactReplayResult> exact;
  if (settings.as_recorded) {
    report = ReportRecordedRun(shown, settings, data, &exact.emplace());
  }
  WhatIfBasis basis;
  if (!settings.as_recorded || !others.empty() || search) {
    absl::StatusOr<WhatIfBasis> found =
        FindBasis(schedule, settings, exact.has_value() ? &*exact : nullptr);
    if (!found.ok()) return found.status();
    basis = *std::move(found);
    if (!settings.as_recorded) {
      report = ReportWhatIfRun(shown, OnRecordedCard(settings, basis.card), data);
      if (!report.ok()) return report;
    }
    AddControl(basis, settings.order, &*report);
    AddUnseen(schedule, contents.inventory, &*report);
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
    const ReplaySettings on_card = OnRecordedCard(settings, basis.card);
    proto::DeviceReport sweep;
    AddSweepTo(&sweep, schedule, on_card, basis, question);
    const absl::StatusOr<ReplaySettings> best = BestOf(sweep.sweep(), on_card);
    *report->mutable_sweep() = std::move(*sweep.mutable_sweep());
    if (best.ok()) others.push_back(*best);
  }
  for (const ReplaySettings& other : others) {
    progress->SetActivity(StrCat("replaying device ", device, " under ", other.config.conf));
    HistoryObserver history(schedule, HistoryObserver::Clock::kRequests,
                            shown.limits.timeline_buckets);
    WhatIfOptions options;
    options.fragmentation = true;
    const ReplaySettings on_card = OnRecordedCard(other, basis.card);
    const absl::StatusOr<WhatIfResult> run = ReplayWhatIf(schedule, on_card, &history, options);
    if (!run.ok()) return run.status();
    AddOther(history, shown.limits, ReportWhatIf(schedule, on_card, contents.peaks, *run),
             &*report);
  }
  if (others.size() > given) report->mutable_page()->mutable_others()->rbegin()->set_found(true);
  return report;
}

}  // namespace memreplay

#include "report/ask/page.h"

#include <utility>

#include "report/answer/build_report.h"
#include "report/answer/inventory.h"
#include "report/answer/page_report.h"
#include "report/answer/unseen.h"
#include "report/ask/oom.h"
#include "report/run/run_data.h"
#include "report/run/run_log.h"
#include "sim/observe/history.h"
#include "sim/recording/sampled_replay.h"
#include "sim/whatif/control.h"
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

}  // namespace

absl::StatusOr<proto::DeviceReport> AskPage(const Schedule& schedule,
                                            const ReplaySettings& settings,
                                            const std::vector<ReplaySettings>& others,
                                            size_t threads, RunData* data, ProgressSink* progress) {
  const int device = schedule.device();
  progress->SetActivity(StrCat("replaying device ", device));
  const DeviceContents contents = DescribeContents(schedule.trace(), schedule.device_index());
  const PageLimits limits;
  WhatIfBasis basis;
  const bool is_what_if = !settings.as_recorded || !others.empty();
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
  return report;
}

}  // namespace memreplay

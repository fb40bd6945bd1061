#include "report/device/loop.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "report/device/device_report.h"
#include "report/device/enums.h"
#include "report/words/sizes.h"
#include "report/words/text.h"
#include "sim/whatif/look_back.h"
#include "sim/whatif/stream_cost.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

proto::StepSummary::Source SourceOf(StepSource source) {
  switch (source) {
    case StepSource::kNone: break;
    case StepSource::kMarks: return proto::StepSummary::marks;
    case StepSource::kAnnotations: return proto::StepSummary::annotations;
    case StepSource::kPeriod: return proto::StepSummary::period;
  }
  return proto::StepSummary::none;
}

constexpr int kMaxSites = 5;

proto::Stack StackOfSite(StackNames& names, const SiteGrowth& site) {
  proto::Stack stack = names.Of(site.stack);
  if (site.size > Bytes()) {
    stack.set_summary(StrCat("allocations of ", FormatSize(site.size), ", ", stack.summary()));
  }
  return stack;
}

void AddHolders(const Schedule& schedule, const LookBack& look_back, proto::LoopReport* loop) {
  for (const Holder& holder : look_back.holders) {
    auto& to = *loop->add_holders();
    const PoolId pool = schedule.pools()[holder.pool];
    SetPool(pool, &to);
    to.set_stream(static_cast<int64_t>(schedule.stream_handle(holder.stream).value()));
    to.set_reserved_bytes(holder.reserved.signed_value());
    to.set_active_bytes(holder.active.signed_value());
    to.set_most_cached_bytes(holder.max_cached.signed_value());
    to.set_most_cached_event(static_cast<int64_t>(holder.most_cached_event));
  }
}

void AddBar(std::string_view figure, int64_t low, int64_t high, bool has_high,
            std::string_view reason, proto::LoopReport* loop) {
  proto::LoopReport::ErrorBar& bar = *loop->add_error_bars();
  bar.set_figure(std::string(figure));
  bar.set_low_bytes(low);
  bar.set_high_bytes(has_high ? high : 0);
  bar.set_has_high(has_high);
  bar.set_reason(std::string(reason));
}

// Adds the error bars of a recording that began when memory was in use, for its figures since then.
void AddErrorBars(const Schedule& schedule, const LookBack& look_back,
                  const proto::RecordedPeaks& recorded, proto::LoopReport* loop) {
  const bool ended = schedule.final_state() != nullptr;
  const std::string_view sums =
      ended ? "the initial state is rebuilt from the events and the final state"
            : "without a final state, memory that no event mentions is not counted";
  const int64_t reserved = recorded.peak_reserved_bytes();
  const int64_t requested = recorded.peak_requested_bytes();
  AddBar("peak_reserved_bytes", reserved, reserved, ended, sums, loop);
  AddBar("peak_requested_bytes", requested, requested, ended, sums, loop);
  // In any case, the figure is between what was requested and what was reserved.
  int64_t less = look_back.less.signed_value();
  int64_t more = look_back.more.signed_value();
  std::string reason = "the recording gives the extent of every block";
  if (look_back.diverged) {
    less = more = reserved;
    reason = StrCat("the replay diverges from the recording at event ",
                    FormatCount(static_cast<int64_t>(look_back.exact_until)));
  } else if (look_back.open_extents > 0) {
    reason = StrCat("the recording does not give the size of ",
                    FormatCount(static_cast<int64_t>(look_back.open_extents), "block"),
                    " allocated before it began");
  }
  const struct {
    std::string_view figure;
    int64_t peak;
  } kRows[] = {{"peak_allocated_bytes", look_back.peak.allocated().signed_value()},
               {"peak_active_bytes", look_back.peak.active().signed_value()}};
  for (const auto& row : kRows) {
    if (requested > reserved) {
      AddBar(row.figure, requested, 0, false, "the file shows more memory requested than reserved",
             loop);
      continue;
    }
    const int64_t high = std::min(row.peak + more, reserved);
    // What was freed and is not complete is requested, and not allocated.
    const int64_t least = requested <= high ? requested : 0;
    AddBar(row.figure, std::max(row.peak - less, least), high, ended, reason, loop);
  }
}

}  // namespace

void AddTimeline(const std::vector<TimelineBucket>& buckets, proto::LoopReport* loop) {
  for (const TimelineBucket& bucket : buckets) {
    const Usage highest = bucket.Highest();
    auto& point = *loop->add_history();
    point.set_first_event(static_cast<int64_t>(bucket.first_event));
    point.set_last_event(static_cast<int64_t>(bucket.last_event()));
    point.set_reserved_bytes(bucket.last.usage.reserved().signed_value());
    point.set_active_bytes(bucket.last.usage.active().signed_value());
    point.set_allocated_bytes(bucket.last.usage.allocated().signed_value());
    point.set_inactive_split_bytes(bucket.last_inactive_split.signed_value());
    point.set_highest_reserved_bytes(highest.reserved().signed_value());
    point.set_highest_active_bytes(highest.active().signed_value());
    point.set_highest_allocated_bytes(highest.allocated().signed_value());
    point.set_highest_inactive_split_bytes(bucket.highest_inactive_split.signed_value());
    point.set_lowest_allocated_bytes(bucket.Lowest().allocated().signed_value());
  }
}

proto::StepSummary StepsReport(StackNames& names, const Steps& steps, const StepGrowth& growth) {
  proto::StepSummary to;
  to.set_why_none(CleanText(steps.why_none));
  if (steps.count() == 0) return to;
  to.set_source(SourceOf(steps.source));
  to.set_name(CleanText(steps.name));
  to.set_steps(static_cast<int64_t>(steps.count()));
  to.set_first_event(static_cast<int64_t>(steps.begins.front()));
  to.set_end_event(static_cast<int64_t>(steps.begins.back()));
  to.set_allocations_per_step(static_cast<int64_t>(steps.allocations_per_step));
  to.set_agreement(steps.agreement);
  to.set_coverage(steps.coverage);
  to.set_whole(steps.whole);
  to.set_may_be_layers(MayBeLayers(steps, growth));
  to.set_growth_bytes_per_step(growth.median);
  to.set_growing_steps(static_cast<int64_t>(growth.growing));
  to.set_swing_bytes(growth.swing);
  for (const uint64_t begin : steps.begins) to.add_begins(static_cast<int64_t>(begin));
  for (const int64_t live : growth.live) to.add_live_bytes(live);
  for (const SiteGrowth& site : growth.sites) {
    if (to.sites_size() == kMaxSites) break;
    proto::SiteGrowth& row = *to.add_sites();
    *row.mutable_stack() = StackOfSite(names, site);
    row.set_size_bytes(site.size.signed_value());
    row.set_grown_bytes(site.bytes);
    row.set_grown_steps(static_cast<int64_t>(site.steps));
    row.set_kept_bytes(site.kept);
    row.set_allocations(static_cast<int64_t>(site.allocations));
    for (const uint64_t event : site.events) row.add_events(static_cast<int64_t>(event));
  }
  return to;
}

proto::LeakEvidence LeakReport(StackNames& names, const DeviceTrace& device, const Steps& steps,
                               const SiteGrowth& leak) {
  proto::LeakEvidence to;
  to.set_bytes_per_step(leak.bytes / static_cast<int64_t>(steps.count()));
  to.set_steps(static_cast<int64_t>(steps.count()));
  to.set_left_bytes(leak.bytes);
  to.set_left_allocations(static_cast<int64_t>(leak.allocations));
  to.set_grown_steps(static_cast<int64_t>(leak.steps));
  to.set_every_steps(static_cast<int64_t>(leak.every));
  to.set_size_bytes(leak.size.signed_value());
  *to.mutable_stack() = StackOfSite(names, leak);
  for (const uint64_t event : leak.events) {
    to.add_events(static_cast<int64_t>(event));
    to.add_addresses(static_cast<int64_t>(device.events[event].address.value()));
  }
  return to;
}

Loop FindLoop(const Schedule& schedule) {
  const Trace& trace = schedule.trace();
  const DeviceTrace& device = schedule.device_trace();
  Loop loop;
  loop.steps = FindSteps(trace, device, device.events.size());
  loop.growth = GrowthPerStep(trace, device, loop.steps, device.events.size());
  return loop;
}

proto::LoopReport ReportLoop(const Schedule& schedule, const Loop& found, StackNames& names,
                             const StreamCost* cost, const LookBack* look_back,
                             const proto::RecordedPeaks& recorded) {
  proto::LoopReport loop;
  const auto& [steps, growth] = found;
  *loop.mutable_steps() = StepsReport(names, steps, growth);
  if (const SiteGrowth* leak = FindLeak(steps, growth)) {
    *loop.mutable_leak() = LeakReport(names, schedule.device_trace(), steps, *leak);
  }
  loop.set_several_streams(AllocatesOnSeveralStreams(schedule));
  if (cost != nullptr) {
    loop.set_peak_reserved_bytes(cost->peak_reserved.signed_value());
    loop.set_peak_reserved_one_stream_bytes(cost->peak_reserved_one_stream.signed_value());
    loop.set_main_stream(static_cast<int64_t>(schedule.stream_handle(cost->main_stream).value()));
    for (const StreamCost::Merged& merged : cost->merged) {
      auto& to = *loop.add_merged_streams();
      to.set_stream(static_cast<int64_t>(schedule.stream_handle(merged.stream).value()));
      to.set_peak_reserved_bytes(merged.peak_reserved.signed_value());
      to.set_cost_bytes(cost->peak_reserved.signed_value() - merged.peak_reserved.signed_value());
    }
  }
  loop.set_peaks_are_lower_bounds(!schedule.is_program() && !schedule.is_cold());
  if (look_back == nullptr) return loop;
  AddTimeline(look_back->timeline, &loop);
  AddHolders(schedule, *look_back, &loop);
  loop.set_exact_until_event(static_cast<int64_t>(look_back->exact_until));
  loop.set_diverged(look_back->diverged);
  loop.set_exactness_reason(CleanText(look_back->exactness_reason));
  if (loop.peaks_are_lower_bounds()) {
    loop.set_open_extents(static_cast<int64_t>(look_back->open_extents));
    const SeenAtPeak peak = SeenWhereMostIsLive(schedule);
    loop.set_peak_live_bytes(peak.live.signed_value());
    loop.set_peak_live_seen_bytes(peak.seen.signed_value());
    AddErrorBars(schedule, *look_back, recorded, &loop);
  }
  return loop;
}

absl::Status AskLoop(const Study& study, StackNames& names, proto::DeviceReport* report) {
  const Schedule& schedule = study.schedule();
  std::optional<StreamCost> cost;
  if (schedule.is_cold() && AllocatesOnSeveralStreams(schedule)) {
    ASSIGN_OR_RETURN(cost, CostOfStreams(schedule, study.settings()));
  }
  std::optional<LookBack> look_back;
  if (!schedule.device_trace().events.empty()) {
    ASSIGN_OR_RETURN(look_back, LookBackOn(study));
  }
  *report->mutable_loop() =
      ReportLoop(schedule, FindLoop(schedule), names, cost.has_value() ? &*cost : nullptr,
                 look_back.has_value() ? &*look_back : nullptr, report->recorded());
  return AddControl(study, report);
}

}  // namespace memreplay

#include "report/ask/page.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "report/ask/oom.h"
#include "report/ask/sweep.h"
#include "report/device/categories.h"
#include "report/device/device_report.h"
#include "report/device/enums.h"
#include "report/device/inventory.h"
#include "report/run/run_data.h"
#include "report/run/run_log.h"
#include "report/words/stack_names.h"
#include "report/words/text.h"
#include "sim/observe/timeline.h"
#include "sim/oom/oom_analysis.h"
#include "sim/recording/sampled_replay.h"
#include "sim/study/what_if.h"
#include "sim/whatif/sweep.h"
#include "trace/value/bounded.h"
#include "trace/value/launch.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// A writer that stores each stack and frame of the page once.
class StackWriter {
 public:
  StackWriter(StackNames& names, proto::Page* page) : names_(names), page_(page) {}

  int Add(uint32_t stack) {
    const auto [row, is_new] = rows_.try_emplace(stack, page_->stacks_size());
    if (!is_new) return row->second;
    const proto::Stack from = names_.Of(stack);
    auto own = from.own().begin();
    proto::Page::Stack& to = *page_->add_stacks();
    to.set_summary(from.summary());
    to.set_depth(from.depth());
    for (int i = 0; i < from.frames_size(); ++i) {
      const std::string& frame = from.frames(i);
      const bool is_own = own != from.own().end() && *own == i;
      if (is_own) ++own;
      const auto [entry, first] = frames_.try_emplace(frame, page_->frames_size());
      if (first) {
        if (is_own) page_->add_own_frames(page_->frames_size());
        page_->add_frames(frame);
      }
      to.add_frames(entry->second);
    }
    return row->second;
  }

 private:
  StackNames& names_;
  proto::Page* page_;
  absl::flat_hash_map<uint32_t, int> rows_;
  absl::flat_hash_map<std::string, int> frames_;
};

// Returns the positions of the `count` largest marks, ascending.
std::vector<size_t> Largest(const std::vector<HistoryMark>& marks, size_t count) {
  std::vector<size_t> kept(marks.size());
  for (size_t i = 0; i < kept.size(); ++i) kept[i] = i;
  if (kept.size() <= count) return kept;
  absl::c_stable_sort(kept, [&](size_t a, size_t b) { return marks[a].size > marks[b].size; });
  kept.resize(count);
  absl::c_sort(kept);
  return kept;
}

void FillCurve(const HistoryObserver& history, size_t marks, proto::Page::Curve* curve) {
  curve->set_events(static_cast<int64_t>(history.events()));
  curve->set_complete(history.complete());
  for (const TimelinePoint& point : history.points()) {
    curve->add_position(static_cast<int64_t>(point.position));
    curve->add_allocated_bytes(point.usage.allocated().signed_value());
    curve->add_active_bytes(point.usage.active().signed_value());
    curve->add_reserved_bytes(point.usage.reserved().signed_value());
    curve->add_requested_bytes(point.usage.requested().signed_value());
  }
  const std::vector<size_t> segments = Largest(history.segments(), marks);
  for (const size_t index : segments) {
    const HistoryMark& mark = history.segments()[index];
    const bool gained =
        mark.kind == EventKind::kSegmentAlloc || mark.kind == EventKind::kSegmentMap;
    curve->add_segment_position(static_cast<int64_t>(mark.position));
    curve->add_segment_bytes(gained ? mark.size.signed_value()
                                    : -Bounded(mark.size.signed_value()));
  }
  curve->set_left_out_segments(static_cast<int64_t>(history.segments().size() - segments.size()));
  const size_t ooms = std::min(history.ooms().size(), marks);
  for (size_t i = 0; i < ooms; ++i) {
    curve->add_oom_position(static_cast<int64_t>(history.ooms()[i].position));
    curve->add_oom_bytes(history.ooms()[i].size.signed_value());
  }
  curve->set_left_out_ooms(static_cast<int64_t>(history.ooms().size() - ooms));
}

char StateLetter(BlockState state) {
  switch (state) {
    case BlockState::kAllocated: return 'a';
    case BlockState::kPendingFree: return 'p';
    case BlockState::kInactive: return 'i';
  }
  return '?';
}

void FillSegment(const SegmentInfo& from, const std::vector<int64_t>& births, StackWriter* stacks,
                 proto::Page::MapSegment* to) {
  to->set_address(static_cast<int64_t>(from.address.value()));
  to->set_total_size(from.total_size.signed_value());
  SetPlace(from.pool_id, from.is_large, from.stream, to);
  to->set_is_expandable(from.is_expandable);
  for (const BlockInfo& block : from.blocks) {
    to->mutable_states()->push_back(StateLetter(block.state));
    to->add_sizes(block.size.signed_value());
    if (block.state == BlockState::kInactive) continue;
    to->add_requested_sizes(block.requested_size.signed_value());
    to->add_stacks(stacks->Add(block.stack));
    to->add_positions(block.id < births.size() ? births[block.id] : -1);
  }
}

void FillGroups(const MemoryState& state, proto::Page::BlockMap* map) {
  std::map<std::tuple<PoolId, bool, StreamHandle>, proto::Page::Group> groups;
  for (const SegmentInfo& segment : state) {
    auto& group = groups[{segment.pool_id, segment.is_large, segment.stream}];
    group.set_segments(group.segments() + 1);
    group.set_blocks(group.blocks() + std::ssize(segment.blocks));
    group.set_reserved_bytes(group.reserved_bytes() + segment.total_size.signed_value());
    for (const BlockInfo& block : segment.blocks) {
      const int64_t size = block.size.signed_value();
      if (block.state == BlockState::kInactive) {
        group.set_largest_free_bytes(std::max(group.largest_free_bytes(), size));
      } else {
        group.set_active_bytes(group.active_bytes() + size);
      }
    }
  }
  for (auto& [key, group] : groups) {
    const auto& [pool, is_large, stream] = key;
    SetPlace(pool, is_large, stream, &group);
    *map->add_groups() = std::move(group);
  }
}

void FillMap(const MemoryState& state, proto::Page::BlockMap::Moment moment,
             const std::vector<int64_t>& births, size_t max_blocks, StackWriter* stacks,
             proto::Page::BlockMap* map) {
  map->set_moment(moment);
  std::vector<size_t> order(state.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  absl::c_stable_sort(
      order, [&](size_t a, size_t b) { return state[a].total_size > state[b].total_size; });
  size_t blocks = 0;
  std::vector<bool> drawn(state.size());
  for (const size_t index : order) {
    if (blocks + state[index].blocks.size() > max_blocks && blocks > 0) break;
    blocks += state[index].blocks.size();
    drawn[index] = true;
  }
  int64_t reserved = 0;
  for (size_t i = 0; i < state.size(); ++i) {
    reserved += state[i].total_size.signed_value();
    if (drawn[i]) {
      FillSegment(state[i], births, stacks, map->add_segments());
    } else {
      map->set_left_out_segments(map->left_out_segments() + 1);
      map->set_left_out_bytes(map->left_out_bytes() + state[i].total_size.signed_value());
    }
  }
  map->set_reserved_bytes(reserved);
  FillGroups(state, map);
}

void FillHoldings(const Schedule& schedule, const Meanings& meanings, const PeakHoldings& peak,
                  size_t most, StackWriter* stacks, proto::Page::Holdings* to) {
  if (!schedule.requests().empty()) {
    to->set_position(static_cast<int64_t>(EventOfRequest(schedule, peak.request)));
  }
  to->set_requested_bytes(peak.requested.signed_value());
  std::map<std::string, proto::Page::Holdings::Row> categories;
  for (size_t i = 0; i < peak.stacks.size(); ++i) {
    const PeakHolding& holding = peak.stacks[i];
    if (const std::string tag = TagOf(schedule.trace(), holding.stack); !tag.empty()) {
      proto::Page::Holdings::Row& row = categories[tag];
      row.set_category(tag);
      row.set_requested_bytes(BoundedSum(row.requested_bytes(), holding.requested.signed_value()));
      row.set_allocations(row.allocations() + static_cast<int64_t>(holding.allocations));
    }
    if (i >= most) {
      to->set_left_out_stacks(to->left_out_stacks() + 1);
      to->set_left_out_bytes(BoundedSum(to->left_out_bytes(), holding.requested.signed_value()));
      continue;
    }
    proto::Page::Holdings::Row& row = *to->add_stacks();
    row.set_stack(stacks->Add(holding.stack));
    row.set_requested_bytes(holding.requested.signed_value());
    row.set_allocations(static_cast<int64_t>(holding.allocations));
    DescribeAllocation(meanings, holding.largest, &row);
  }
  for (auto& [tag, row] : categories) *to->add_categories() = std::move(row);
  absl::c_stable_sort(*to->mutable_categories(), [](const auto& a, const auto& b) {
    return a.requested_bytes() > b.requested_bytes();
  });
}

// Adds reserved memory with a change of the script.
void AddServing(const HistoryObserver& history, proto::DeviceReport* report) {
  proto::Page::Curve& curve = *report->mutable_page()->add_serving();
  curve.set_events(static_cast<int64_t>(history.events()));
  curve.set_complete(history.complete());
  for (const TimelinePoint& point : history.points()) {
    curve.add_position(static_cast<int64_t>(point.position));
    curve.add_reserved_bytes(point.usage.reserved().signed_value());
  }
}

// What a page shows of one device.
struct Shown {
  const Study& study;
  std::shared_future<Unsimulated> unsimulated;
  size_t threads;
  PageLimits limits = {};
};

// Reports the page's own run: a recording as it happened, or under the study's settings.
absl::StatusOr<proto::DeviceReport> ReportOwnRun(const Shown& shown, RunData* data) {
  const Study& study = shown.study;
  const Schedule& schedule = study.schedule();
  const bool as_recorded = study.settings().as_recorded;
  RunLogObserver log(schedule, /*positions_are_events=*/as_recorded);
  HistoryObserver history(
      schedule, as_recorded ? HistoryObserver::Clock::kEvents : HistoryObserver::Clock::kRequests,
      shown.limits.timeline_buckets);
  ObserversTogether watchers(history, log);
  const auto finish = [&](proto::DeviceReport report,
                          const std::optional<Fragmentation>& fragmentation,
                          const MemoryState& at_end) {
    const Unsimulated& known = shown.unsimulated.get();
    *report.mutable_inventory() = known.contents.inventory;
    AddPage(schedule, study.meanings(), known, history,
            fragmentation.has_value() ? &fragmentation->segments : nullptr, at_end, shown.limits,
            &report);
    *data = MakeRunData(schedule, study.meanings(), log.log(), shown.threads);
    return report;
  };
  if (as_recorded) {
    const SampledReplay replay = study.WatchAsRecorded(&watchers, /*keep_segments=*/true);
    return finish(ReportReplay(study, shown.unsimulated.get().contents.peaks, replay),
                  replay.fragmentation, replay.exact.segments);
  }
  const ReplaySettings on_card = study.OnCard(study.settings());
  WhatIfOptions options;
  options.fragmentation = options.keep_segments = true;
  ASSIGN_OR_RETURN(const WhatIfResult run, ReplayWhatIf(schedule, on_card, &watchers, options));
  return finish(ReportWhatIf(schedule, on_card, shown.unsimulated.get().contents.peaks, run),
                run.fragmentation, run.segments);
}

// Returns the first of the ranking. Error: NotFound if the current settings are as good.
absl::StatusOr<ReplaySettings> BestOf(const proto::Sweep& sweep, const ReplaySettings& settings) {
  const proto::SweepRow& current = sweep.current();
  if (sweep.rows().empty() || !sweep.rows(0).refused().empty() ||
      (sweep.rows(0).ooms() >= current.ooms() &&
       sweep.rows(0).peak_reserved_bytes() >= current.peak_reserved_bytes())) {
    return absl::NotFoundError("no better settings found");
  }
  const proto::SweepRow& best = sweep.rows(0);
  Candidate candidate;
  candidate.conf = best.conf();
  if (best.memory_fraction() > 0) candidate.fraction = best.memory_fraction();
  absl::StatusOr<ReplaySettings> found = SettingsFor(settings, candidate);
  if (found.ok()) found->as_recorded = false;
  return found;
}

// Returns whether a run is under the same settings; different texts may mean the same.
bool IsUnderSame(ReplaySettings a, ReplaySettings b) {
  a.config.conf.clear();
  b.config.conf.clear();
  return a.config == b.config && a.fraction == b.fraction;
}

}  // namespace

Unsimulated FindUnsimulated(const Schedule& schedule) {
  return {FindLoop(schedule), HoldingsAtPeak(schedule), BirthEvents(schedule),
          DescribeContents(schedule)};
}

void AddPage(const Schedule& schedule, const Meanings& meanings, const Unsimulated& known,
             const HistoryObserver& history, const MemoryState* at_peak, const MemoryState& at_end,
             const PageLimits& limits, proto::DeviceReport* report) {
  proto::Page& page = *report->mutable_page();
  page.set_positions(static_cast<int64_t>(schedule.is_program() ? schedule.requests().size()
                                                                : schedule.recorded().size()));
  FillCurve(history, limits.marks, page.mutable_curve());
  StackNames names(schedule.trace());
  StackWriter stacks(names, &page);
  FillHoldings(schedule, meanings, known.holdings, limits.stacks, &stacks, page.mutable_holdings());
  if (at_peak != nullptr && !at_peak->empty()) {
    FillMap(*at_peak, proto::Page::BlockMap::peak, known.births, limits.map_blocks, &stacks,
            page.add_maps());
  }
  if (!at_end.empty()) {
    FillMap(at_end, proto::Page::BlockMap::end, known.births, limits.map_blocks, &stacks,
            page.add_maps());
  }
  for (const HistoryMark& mark : history.phases()) {
    if (page.phases_size() >= static_cast<int>(limits.marks)) {
      page.set_left_out_phases(page.left_out_phases() + 1);
      continue;
    }
    proto::Page::Phase& phase = *page.add_phases();
    phase.set_position(static_cast<int64_t>(mark.position));
    phase.set_name(CleanText(schedule.trace().strings[mark.text]));
  }
  *report->mutable_loop() =
      ReportLoop(schedule, known.loop, names, nullptr, nullptr, report->recorded());
  report->clear_segments();
}

void AddOther(const HistoryObserver& history, const PageLimits& limits, proto::DeviceReport other,
              proto::DeviceReport* report) {
  proto::Page::Other& to = *report->mutable_page()->add_others();
  FillCurve(history, limits.marks, to.mutable_curve());
  other.clear_segments();
  other.clear_rules();
  other.clear_diagnostics();
  *to.mutable_report() = std::move(other);
}

absl::StatusOr<proto::DeviceReport> AskPage(const Study& study, const PageQuestion& question,
                                            RunData* data) {
  const Schedule& schedule = study.schedule();
  const ReplaySettings& settings = study.settings();
  const int device = schedule.device();
  ProgressSink* const progress = question.progress;
  progress->SetActivity(StrCat("replaying device ", device));
  std::shared_future<Unsimulated> unsimulated = LaunchOn(question.threads, [&] {
    study.categories();
    proto::Report::descriptor();  // protobuf makes it when it is first needed, for the page's JSON
    return FindUnsimulated(schedule);
  });
  const Shown shown = {study, std::move(unsimulated), question.threads};
  std::vector<ReplaySettings> others = question.others;
  std::optional<size_t> found;  // the one of others that the search found best
  absl::StatusOr<proto::DeviceReport> report = ReportOwnRun(shown, data);
  if (!report.ok()) return report;
  const DeviceContents& contents = shown.unsimulated.get().contents;
  if (!settings.as_recorded || !others.empty() || question.search) {
    RETURN_IF_ERROR(AddControl(study, &*report));
  }
  AddUnseen(study, contents.inventory, &*report);
  if (report->ooms() > 0 || report->recorded().ooms() > 0) {
    progress->SetActivity(StrCat("examining device ", device));
    OomReportOptions options;
    options.meanings = &study.meanings();
    ASSIGN_OR_RETURN(
        proto::OutOfMemory oom,
        WhyOutOfMemory(schedule, settings.as_recorded ? settings : study.OnCard(settings),
                       options));
    *report->mutable_oom() = std::move(oom);
    const ServingQuestion serving = {
        .show = [&](const HistoryObserver& history) { AddServing(history, &*report); },
        .timeline_buckets = shown.limits.timeline_buckets};
    RETURN_IF_ERROR(AddServingAdvice(study, serving, progress, &*report));
  }
  StackNames names(schedule.trace());
  AddCategories(study, names, &*report);
  if (question.search) {
    progress->SetActivity(StrCat("searching settings for device ", device));
    SweepQuestion sweep_question;
    sweep_question.threads = question.threads;
    proto::DeviceReport sweep;
    AddSweepTo(&sweep, study, sweep_question);
    if (std::string note = SearchLimitNote(schedule); !note.empty()) {
      report->add_notes(std::move(note));
    }
    const absl::StatusOr<ReplaySettings> best = BestOf(sweep.sweep(), study.OnCard(settings));
    *report->mutable_sweep() = std::move(*sweep.mutable_sweep());
    if (best.ok()) {
      const auto given =
          absl::c_find_if(others, [&](const auto& other) { return IsUnderSame(other, *best); });
      found = static_cast<size_t>(given - others.begin());
      if (given == others.end()) others.push_back(*best);
    }
  }
  for (const ReplaySettings& other : others) {
    progress->SetActivity(StrCat("replaying device ", device, " under ", other.config.conf));
    HistoryObserver history(schedule, HistoryObserver::Clock::kRequests,
                            shown.limits.timeline_buckets);
    WhatIfOptions options;
    options.fragmentation = true;
    const ReplaySettings on_card = study.OnCard(other);
    ASSIGN_OR_RETURN(const WhatIfResult run, ReplayWhatIf(schedule, on_card, &history, options));
    AddOther(history, shown.limits, ReportWhatIf(schedule, on_card, contents.peaks, run), &*report);
  }
  if (found.has_value()) {
    report->mutable_page()->mutable_others(static_cast<int>(*found))->set_found(true);
  }
  return report;
}

}  // namespace memreplay

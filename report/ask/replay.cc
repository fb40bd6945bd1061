#include "report/ask/replay.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "report/device/categories.h"
#include "report/device/device_report.h"
#include "report/device/inventory.h"
#include "report/device/loop.h"
#include "report/words/stack_names.h"
#include "report/words/verdict.h"
#include "sim/category/server_budget.h"
#include "sim/recording/replay_settings.h"
#include "sim/recording/sampled_replay.h"
#include "sim/study/what_if.h"
#include "trace/value/status_macros.h"

namespace memreplay {
namespace {

absl::StatusOr<ReplayAnswer> Replayed(const Study& study, StartPolicy start, Observer* watchers,
                                      StackNames& names) {
  const Schedule& schedule = study.schedule();
  const DeviceContents contents = DescribeContents(schedule);
  ReplayAnswer answer;
  if (study.settings().as_recorded) {
    if (watchers == nullptr) {
      answer.report = ReportReplay(study, contents.peaks, study.AsRecorded());
      DescribeBlocks(study, study.AsRecorded().exact.segments, names,
                     answer.report.mutable_segments());
      return answer;
    }
    SampledReplay replay = study.WatchAsRecorded(watchers);
    answer.report = ReportReplay(study, contents.peaks, replay);
    answer.segments = std::move(replay.exact.segments);
    DescribeBlocks(study, answer.segments, names, answer.report.mutable_segments());
    return answer;
  }
  const ReplaySettings on_card = study.OnCard(study.settings());
  WhatIfOptions options = study.Options(start);
  options.fragmentation = true;
  ASSIGN_OR_RETURN(WhatIfResult result, ReplayWhatIf(schedule, on_card, watchers, options));
  answer.report = ReportWhatIf(schedule, on_card, contents.peaks, result);
  RETURN_IF_ERROR(AddControl(study, &answer.report));
  AddUnseen(study, contents.inventory, &answer.report);
  ASSIGN_OR_RETURN(const Bytes other, study.PeakInOtherOrder(on_card, start));
  answer.report.set_other_order_peak_reserved_bytes(other.signed_value());
  answer.segments = std::move(result.segments);
  DescribeBlocks(study, answer.segments, names, answer.report.mutable_segments());
  return answer;
}

// Adds how a server divides the memory of `card`, if it is one.
void AddServerBudget(const Study& study, const proto::RecordedCard& card,
                     proto::RecordedReplay* replay) {
  const std::optional<ServerBudget> found = FindServerBudget(study.recording());
  if (!found.has_value()) return;
  proto::RecordedReplay::ServerBudget& budget = *replay->mutable_server();
  budget.set_weights(found->weights.signed_value());
  budget.set_profile(found->profile.signed_value());
  budget.set_cache(found->cache.signed_value());
  budget.set_tensors(found->tensors);
  budget.set_graphs(found->graphs.signed_value());
  budget.set_other(std::max<int64_t>(
      card.peak_reserved() - budget.weights() - budget.cache() - budget.graphs(), 0));
  budget.set_left(card.spare());
}

}  // namespace

absl::StatusOr<ReplayAnswer> AskReplay(const Study& study, StartPolicy start, Observer* watchers) {
  StackNames names(study.trace());
  absl::StatusOr<ReplayAnswer> answer = Replayed(study, start, watchers, names);
  if (!answer.ok()) return answer;
  AddCategories(study, names, &answer->report);
  return answer;
}

absl::StatusOr<proto::DeviceReport> AskCurrent(const Study& study) {
  const Schedule& schedule = study.schedule();
  const DeviceContents contents = DescribeContents(schedule);
  proto::DeviceReport report;
  if (schedule.is_program()) {
    ASSIGN_OR_RETURN(const WhatIfResult result, study.Run(study.settings()));
    report = ReportWhatIf(schedule, study.settings(), contents.peaks, result);
  } else {
    report = ReportReplay(study, contents.peaks, study.AsRecorded());
    RETURN_IF_ERROR(AddControl(study, &report));
    AddUnseen(study, contents.inventory, &report);
  }
  report.set_capacity_bytes(study.settings().capacity.value_or(Bytes()).signed_value());
  report.clear_segments();
  report.clear_statistics();
  report.clear_rules();
  return report;
}

absl::StatusOr<std::optional<Bytes>> PeakCompletedAtOnce(const Study& study,
                                                         const ReplaySettings& settings) {
  const Schedule& schedule = study.schedule();
  // Each free that completed late has a stream of its own, so there was none.
  if (schedule.stream_count() == schedule.trace().streams.size()) return std::nullopt;
  ASSIGN_OR_RETURN(const WhatIfResult as_it_was, study.Run(settings));
  WhatIfOptions options = study.Options();
  options.complete_at_once = true;
  ASSIGN_OR_RETURN(const WhatIfResult at_once, ReplayWhatIf(schedule, settings, nullptr, options));
  if (at_once.peak.reserved() == as_it_was.peak.reserved()) return std::nullopt;
  return at_once.peak.reserved();
}

proto::RecordedReplay RecordedReplayOf(const Trace& trace, StackNames& names, size_t device_index,
                                       const proto::DeviceReport& device) {
  proto::RecordedReplay replay;
  replay.set_device(device.device());
  replay.set_events(device.events());
  replay.set_agrees(FindFaults(device).empty());
  replay.set_sentence(FidelitySentence(device));
  *replay.mutable_diagnosis() = DiagnosisOf(device);
  replay.set_peak_reserved(device.peak_reserved_bytes());
  replay.set_peak_allocated(device.peak_allocated_bytes());
  replay.set_ooms(device.ooms());
  for (const std::string& note : device.notes()) replay.add_notes(note);
  const EventList& events = trace.devices[device_index].events;
  if (!device.has_categories()) return replay;
  const int64_t at = device.categories().peak_event();  // the moment that the diagnosis explains
  if (at < 0 || static_cast<size_t>(at) >= events.size()) return replay;
  const auto has_stack = [&](int64_t i) {
    return !HasText(events[i].kind) && events[i].text_or_stack != kNoStack;
  };
  int64_t known = at;
  while (known >= 0 && !has_stack(known)) --known;
  if (known < 0) return replay;
  const std::string& label = names.Label(events[known].text_or_stack);
  if (known == at) {
    replay.set_peak_stack(label);
  } else {
    replay.set_stack_before(label);
    replay.set_events_since(at - known);
  }
  return replay;
}

absl::Status AddReplays(const OpenedFile& snapshot, proto::RecordedProcess* process) {
  for (const std::unique_ptr<const Study>& study : snapshot.devices) {
    StackNames names(study->trace());
    ASSIGN_OR_RETURN(ReplayAnswer answer, AskReplay(*study, StartPolicy::kRecorded, nullptr));
    answer.report.clear_holding();  // it is said of the process
    proto::RecordedReplay& replay = *process->add_replays();
    replay = RecordedReplayOf(study->trace(), names, study->device_index(), answer.report);
    ReplaySettings on_card = study->settings();
    if (replay.device() >= 0 && replay.device() < process->cards_size()) {
      const proto::RecordedCard& card = process->cards(replay.device());
      on_card.capacity = Bytes(static_cast<uint64_t>(card.peak_reserved() + card.spare()));
      on_card.total = study->card().total;
      AddServerBudget(*study, card, &replay);
    }
    ASSIGN_OR_RETURN(const std::optional<Bytes> at_once, PeakCompletedAtOnce(*study, on_card));
    replay.set_at_once_peak_reserved(at_once.value_or(Bytes()).signed_value());
  }
  return absl::OkStatus();
}

absl::StatusOr<proto::DeviceReport> AskInspect(const Study& study,
                                               const InspectQuestion& question) {
  const Trace& trace = study.trace();
  StackNames names(trace);
  proto::DeviceReport report = ReportContents(trace, study.device_index(), study.settings().torch);
  if (trace.devices[study.device_index()].has_final_state) {
    *report.mutable_held_at_end() = HeldAtEnd(trace, study.device_index(), names, question.held);
  }
  if (IsOfNpu(trace)) report.add_notes(std::string(kNpuNote));
  if (question.deep)
    study.schedule();  // otherwise it would be built a second time for categories alone
  AddCategories(study, names, &report);
  if (!question.deep) return report;
  RETURN_IF_ERROR(AskLoop(study, names, &report));
  *report.mutable_held_at_peak() = HeldAtPeak(study.schedule(), names, question.held);
  return report;
}

}  // namespace memreplay

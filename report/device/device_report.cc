#include "report/device/device_report.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "proto/numbers.h"
#include "report/device/enums.h"
#include "report/device/inventory.h"
#include "report/words/answer.h"
#include "report/words/new_report.h"
#include "report/words/render_json.h"
#include "report/words/stack_names.h"
#include "report/words/text.h"
#include "sim/settings/torch_profile.h"
#include "sim/whatif/stream_cost.h"
#include "sim/workload/step_growth.h"
#include "sim/workload/steps.h"
#include "trace/value/diagnostics.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

proto::Diagnostic::Severity SeverityOf(Severity severity) {
  switch (severity) {
    case Severity::kInfo: return proto::Diagnostic::info;
    case Severity::kDataLoss: return proto::Diagnostic::data_loss;
    case Severity::kError: break;
  }
  return proto::Diagnostic::error;
}

void AddDiagnostics(const Diagnostics& diagnostics, proto::DeviceReport* report) {
  for (size_t row = 0; row < static_cast<size_t>(DiagnosticKind::kCount); ++row) {
    const auto kind = static_cast<DiagnosticKind>(row);
    if (diagnostics.count(kind) == 0) continue;
    const DiagnosticRow& description = DescribeDiagnostic(kind);
    proto::Diagnostic& diagnostic = *report->add_diagnostics();
    diagnostic.set_name(std::string(description.name));
    diagnostic.set_severity(SeverityOf(description.severity));
    diagnostic.set_count(static_cast<int64_t>(diagnostics.count(kind)));
    diagnostic.set_sentence(std::string(description.sentence));
    for (const Diagnostics::Place& place : diagnostics.places(kind)) {
      auto& to = *diagnostic.add_places();
      to.set_position(static_cast<int64_t>(place.position));
      to.set_detail(CleanText(place.detail));
    }
  }
}

proto::DeviceReport StartDevice(int device, const ProfileChoice& torch, std::string_view conf) {
  proto::DeviceReport report;
  report.set_device(device);
  *report.mutable_torch() = DescribeChoice(torch);
  report.set_torch_profile(std::string(torch.profile->release));
  report.set_conf(CleanText(conf));
  // The field is present even if nothing was compared, so that readers need not check.
  report.mutable_fidelity();
  report.mutable_final_blocks();
  return report;
}

proto::DeviceReport StartReplay(const Schedule& schedule, const ReplaySettings& settings,
                                proto::Mode mode) {
  proto::DeviceReport report = StartDevice(schedule.device(), settings.torch, settings.config.conf);
  for (const std::string& note : settings.notes) report.add_notes(CleanText(note));
  report.set_mode(mode);
  return report;
}

void AddStatistics(const MemoryStats& statistics, const TorchProfile& profile,
                   proto::DeviceReport* report) {
  auto& flat = *report->mutable_statistics();
  for (const auto& [name, value] : FlatStatistics(statistics, profile)) flat[name] = value;
}

// Returns whether a recorded script set settings that its own PyTorch rejected: it got the same
// exception there.
bool WasRejected(const Event& request, const Schedule& schedule) {
  if (request.kind != EventKind::kSettings || schedule.is_program()) return false;
  const absl::StatusOr<ProfileChoice> torch = ChooseProfile(schedule.trace(), std::nullopt);
  AllocatorConfig ignored;
  return torch.ok() && !ParseAllocatorConf(schedule.trace().strings[request.text_or_stack],
                                           *torch->profile, &ignored)
                            .ok();
}

void AddFailures(const RunResult& run, const Schedule& schedule, proto::DeviceReport* report) {
  report->set_ooms(static_cast<int64_t>(run.ooms));
  for (const RequestFailure& failure : run.failures) {
    if (WasRejected(schedule.requests()[failure.request], schedule)) continue;
    proto::RequestFailure& to = *report->add_failures();
    to.set_request(static_cast<int64_t>(failure.request));
    to.set_message(CleanText(failure.message));
    to.set_is_out_of_memory(failure.is_out_of_memory);
  }
}

proto::Event EventOf(const Event& event, const Schedule& schedule) {
  proto::Event to;
  to.set_action(std::string(EventKindName(event.kind)));
  to.set_addr(static_cast<int64_t>(event.address.value()));
  to.set_size(event.size.signed_value());
  to.set_stream(static_cast<int64_t>(schedule.stream_handle(event.stream).value()));
  return to;
}

// `at` is the moment at which it was sampled.
void AddFragmentation(const Fragmentation& from, const Moment& at, const Schedule& schedule,
                      proto::DeviceReport* report) {
  proto::Fragmentation& to = *report->mutable_fragmentation();
  to.set_at_event(at.request == kBeforeFirstRequest
                      ? -1  // before the first event
                      : static_cast<int64_t>(EventOfRequest(schedule, at.request)));
  to.set_internal_bytes(from.internal.signed_value());
  to.set_inactive_split_bytes(from.inactive_split.signed_value());
  to.set_reserved_minus_active_bytes(from.unused.signed_value());
  to.set_unservable_share(from.unservable_share());
  to.set_unservable_requests(static_cast<int64_t>(from.requests));
  const auto streams = BusiestStreams(schedule);
  for (const FreeSetUse& set : from.free_sets) {
    if (!streams.empty() && set.stream != streams.front().second &&
        schedule.pools()[set.pool].is_default()) {
      to.set_side_stream_free_bytes(to.side_stream_free_bytes() + set.free.signed_value());
    }
    auto& list = *to.add_largest_free();
    const PoolId pool = schedule.pools()[set.pool];
    SetPlace(pool, set.is_large, schedule.stream_handle(set.stream), &list);
    list.set_bytes(set.largest.signed_value());
    list.set_free_bytes(set.free.signed_value());
    list.set_free_blocks(static_cast<int64_t>(set.blocks));
  }
}

// Adds what is measured in every run.
void AddMeasures(const Usage& peak, const Moments& moments,
                 const std::optional<Fragmentation>& fragmentation, const Schedule& schedule,
                 proto::DeviceReport* report) {
  report->set_peak_allocated_bytes(peak.allocated().signed_value());
  report->set_peak_reserved_bytes(peak.reserved().signed_value());
  report->set_peak_active_bytes(peak.active().signed_value());
  report->set_peak_requested_bytes(peak.requested().signed_value());
  if (fragmentation.has_value()) {
    AddFragmentation(*fragmentation, moments.at_peak, schedule, report);
  }
}

// Adds what the run began with, and what it can be compared with.
void AddOrigin(const Schedule& schedule, const proto::RecordedPeaks& recorded, StartPolicy start,
               const std::string& start_note, proto::DeviceReport* report) {
  if (schedule.is_program()) {
    report->mutable_inventory()->set_is_program(true);
    return;
  }
  *report->mutable_recorded() = recorded;
  if (schedule.is_cold()) return;
  report->add_notes(
      start == StartPolicy::kRecorded
          ? "the replay starts with the segments and blocks that the recording started with"
          : StrCat("the replay starts with what was live when the recording began, allocated again",
                   start_note.empty() ? "" : StrCat(": ", start_note)));
}

int64_t CountOf(const Schedule& schedule) {
  return static_cast<int64_t>(schedule.is_program() ? schedule.requests().size()
                                                    : schedule.recorded().size());
}

// Adds the peaks that are known without a replay. Without events, the final state is all that is
// known.
void AddKnownPeaks(const DeviceContents& contents, proto::DeviceReport* report) {
  report->set_peak_reserved_bytes(contents.peaks.peak_reserved_bytes());
  report->set_peak_requested_bytes(contents.peaks.peak_requested_bytes());
  if (report->events() > 0) return;
  report->set_peak_active_bytes(contents.inventory.final_active_bytes());
  report->set_peak_allocated_bytes(contents.inventory.final_allocated_bytes());
}

constexpr size_t kMaxEnded = 400;  // bytes

proto::TorchProfileChoice::Reason ReasonOf(ProfileReason reason) {
  switch (reason) {
    case ProfileReason::kGiven: break;
    case ProfileReason::kInFile: return proto::TorchProfileChoice::in_file;
    case ProfileReason::kDefault: return proto::TorchProfileChoice::unnamed;
    case ProfileReason::kLayout: return proto::TorchProfileChoice::layout;
    case ProfileReason::kReproduces: return proto::TorchProfileChoice::reproduces;
    case ProfileReason::kReproducesMost: return proto::TorchProfileChoice::reproduces_most;
    case ProfileReason::kNewestKey: return proto::TorchProfileChoice::newest_key;
    case ProfileReason::kUnknownLayout: return proto::TorchProfileChoice::unknown_layout;
  }
  return proto::TorchProfileChoice::given;
}

}  // namespace

proto::Report StartReport(std::string_view command, std::string_view file, const Trace& trace) {
  proto::Report report = NewReport(command);
  report.set_file(CleanText(file));
  report.set_format(CleanText(trace.format));
  return report;
}

proto::Report FailedReport(std::string_view command, std::string_view file,
                           std::string_view error) {
  proto::Report report = StartReport(command, file, Trace());
  report.set_error(CleanText(error));
  return report;
}

proto::DeviceReport ReportContents(const Trace& trace, size_t device_index,
                                   const ProfileChoice& torch) {
  const DeviceTrace& device = trace.devices[device_index];
  proto::DeviceReport report =
      StartDevice(device.device, torch, trace.settings.has_value() ? trace.settings->conf : "");
  report.set_mode(proto::Mode::inspect);
  report.set_events(std::ssize(device.events));
  DeviceContents contents = DescribeContents(trace, device_index);
  report.set_ooms(contents.peaks.ooms());
  AddKnownPeaks(contents, &report);
  *report.mutable_inventory() = std::move(contents.inventory);
  *report.mutable_recorded() = std::move(contents.peaks);
  if (device.has_final_state) {
    *report.mutable_fragmentation() = FragmentationOf(device.final_state);
  }
  AddDiagnostics(trace.diagnostics, &report);
  AddHolding(trace, device_index, &report);
  return report;
}

proto::DeviceReport ReportReplay(const Study& study, const proto::RecordedPeaks& recorded,
                                 const SampledReplay& replay) {
  const ExactReplayResult& result = replay.exact;
  const Schedule& schedule = study.schedule();
  proto::DeviceReport report = StartReplay(schedule, study.settings(), proto::Mode::as_recorded);
  report.set_conf(CleanText(study.settings().recorded_config.conf));
  report.set_events(static_cast<int64_t>(result.recorded_events));

  proto::Fidelity& fidelity = *report.mutable_fidelity();
  fidelity.set_compared_events(static_cast<int64_t>(result.compared_events));
  fidelity.set_matched_events(static_cast<int64_t>(result.matched_events));
  if (result.first_divergence.has_value()) {
    proto::Divergence& divergence = *fidelity.mutable_first_divergence();
    divergence.set_index(static_cast<int64_t>(result.first_divergence->index));
    const Divergence& first = *result.first_divergence;
    if (first.recorded) *divergence.mutable_recorded() = EventOf(*first.recorded, schedule);
    if (first.simulated) *divergence.mutable_simulated() = EventOf(*first.simulated, schedule);
  }
  report.mutable_final_blocks()->set_compared(static_cast<int64_t>(result.final_blocks.compared));
  report.mutable_final_blocks()->set_matched(static_cast<int64_t>(result.final_blocks.matched));
  report.set_exact_until_event(static_cast<int64_t>(result.exact_until_event));
  report.set_exactness_reason(CleanText(result.exactness_reason));

  AddMeasures(replay.peak, replay.moments, replay.fragmentation, schedule, &report);
  *report.mutable_recorded() = recorded;
  AddFailures(result.run, schedule, &report);
  AddStatistics(result.statistics, *study.settings().torch.profile, &report);
  AddSegments(result.segments, report.mutable_segments());
  Diagnostics diagnostics = schedule.diagnostics();
  diagnostics.Merge(result.start.diagnostics);
  AddDiagnostics(diagnostics, &report);
  AddHolding(schedule.trace(), schedule.device_index(), &report);
  return report;
}

proto::DeviceReport ReportWhatIf(const Schedule& schedule, const ReplaySettings& settings,
                                 const proto::RecordedPeaks& recorded, const WhatIfResult& result) {
  proto::DeviceReport report = StartReplay(schedule, settings, proto::Mode::what_if);
  report.set_events(CountOf(schedule));
  report.set_capacity_bytes(settings.capacity.value_or(Bytes()).signed_value());
  AddMeasures(result.peak, result.moments, result.fragmentation, schedule, &report);
  AddOrigin(schedule, recorded, result.start, result.start_note, &report);
  if (result.first_oom.has_value()) {
    const uint64_t event = EventOfRequest(schedule, *result.first_oom);
    StackNames names(schedule.trace());
    proto::DeviceReport::FirstOom& first = *report.mutable_first_oom();
    first.set_event_index(static_cast<int64_t>(event));
    *first.mutable_stack() = names.Of(schedule.requests()[*result.first_oom].text_or_stack);
  }
  AddFailures(result.run, schedule, &report);
  AddStatistics(result.statistics, *settings.torch.profile, &report);
  report.set_device_calls(static_cast<int64_t>(result.calls.total()));
  for (size_t rule = 0; rule < kRuleCount; ++rule) {
    if (result.rules[rule] > 0) {
      (*report.mutable_rules())[std::string(kRuleNames[rule])] =
          static_cast<int64_t>(result.rules[rule]);
    }
  }
  AddSegments(result.segments, report.mutable_segments());
  AddDiagnostics(schedule.diagnostics(), &report);
  return report;
}

absl::Status AddControl(const Study& study, proto::DeviceReport* report) {
  ASSIGN_OR_RETURN(const std::optional<Control> found, study.FindControl());
  if (!found.has_value()) return absl::OkStatus();
  const Control& control = *found;
  const GpuLimits& card = study.card();
  proto::Control& to = *report->mutable_control();
  to.set_recorded_peak_reserved_bytes(report->recorded().peak_reserved_bytes());
  to.set_peak_reserved_bytes(control.peak_reserved.signed_value());
  to.set_other_order_peak_reserved_bytes(control.other_order_peak_reserved.signed_value());
  to.set_ooms(static_cast<int64_t>(control.ooms));
  to.set_addresses(study.settings().order == AddressOrder::kUpwards ? "upwards" : "downwards");
  if (report->mode() == proto::Mode::as_recorded) {
    report->set_device_calls(static_cast<int64_t>(control.device_calls));
  }
  to.set_card_granted_bytes(card.granted.signed_value());
  to.set_card_refused_bytes(card.refused().value_or(Bytes()).signed_value());
  to.set_card_at_oom_bytes(card.at_oom.value_or(Bytes()).signed_value());
  return absl::OkStatus();
}

proto::DeviceReport ReportDeviceRun(const RunPlan& plan, const proto::RecordedPeaks& recorded,
                                    const DeviceRun& run) {
  const Schedule& schedule = *plan.schedule;
  proto::DeviceReport report = StartReplay(schedule, *plan.settings, proto::Mode::gpu);
  report.set_events(CountOf(schedule));
  report.set_capacity_bytes(run.total.signed_value());
  AddMeasures(run.peak, run.moments, run.fragmentation, schedule, &report);
  AddOrigin(schedule, recorded, plan.start, plan.start_note, &report);
  AddFailures(run.run, schedule, &report);
  AddStatistics(run.statistics, *plan.settings->torch.profile, &report);
  AddDiagnostics(schedule.diagnostics(), &report);
  return report;
}

proto::DeviceReport ReportOom(const Schedule& schedule, const ReplaySettings& settings,
                              const DeviceContents& contents, proto::OutOfMemory oom) {
  proto::DeviceReport report = StartReplay(schedule, settings, proto::Mode::oom);
  report.set_events(CountOf(schedule));
  report.set_capacity_bytes(settings.capacity.value_or(Bytes()).signed_value());
  report.set_ooms(oom.ooms());
  if (schedule.is_program()) report.mutable_inventory()->set_is_program(true);
  *report.mutable_recorded() = contents.peaks;
  if (oom.recorded() || oom.verdict() == proto::Verdict::none) AddKnownPeaks(contents, &report);
  AddDiagnostics(schedule.diagnostics(), &report);
  AddHolding(schedule.trace(), schedule.device_index(), &report);
  // Of the moment that the recording has: another has other holders.
  if (report.has_holding() && !oom.recorded()) {
    report.mutable_holding()->clear_held();
    report.mutable_holding()->clear_request();
  }
  *report.mutable_oom() = std::move(oom);
  return report;
}

void AddHolding(const Trace& trace, size_t device_index, proto::DeviceReport* report) {
  for (const MemoryNote& note : trace.devices[device_index].notes) {
    if (note.kind != NoteKind::kHolding) continue;
    proto::Holding* const holding = report->mutable_holding();
    if (!ParseJson(trace.strings[note.name], "who holds memory", holding).ok() ||
        !CheckNumbers(*holding).ok()) {
      report->clear_holding();
      report->add_notes("what the process noted of who holds memory cannot be read");
    }
  }
}

void AddUnseen(const Study& study, const proto::Inventory& inventory, proto::DeviceReport* report) {
  const Schedule& schedule = study.schedule();
  if (schedule.is_program()) return;
  report->set_is_capacity_given(study.settings().capacity.has_value());
  const Trace& trace = schedule.trace();
  const DeviceTrace& device = schedule.device_trace();
  const auto is_oom = [](const Event& event) { return event.kind == EventKind::kOom; };
  const auto first = std::find_if(device.events.begin(), device.events.end(), is_oom);
  const bool ran_out = first != device.events.end();
  if (!ran_out && trace.ended.empty() && schedule.is_cold() && !schedule.requests().empty()) return;

  proto::Unseen& unseen = *report->mutable_unseen();
  unseen.set_first_oom_event(-1);
  unseen.set_has_events(!schedule.requests().empty());
  unseen.set_ended(CleanText(trace.ended, kMaxEnded));
  if (!schedule.is_cold()) {
    unseen.set_start_allocations(inventory.start_allocations());
    unseen.set_start_requested_bytes(inventory.start_requested_bytes());
    unseen.set_start_reserved_bytes(inventory.start_reserved_bytes());
  }
  if (!ran_out) return;
  const auto position = static_cast<uint64_t>(first - device.events.begin());
  unseen.set_ooms(std::count_if(first, device.events.end(), is_oom));
  unseen.set_first_oom_event(static_cast<int64_t>(position));
  const Steps steps = FindSteps(trace, device, position);
  if (steps.count() == 0) return;
  const StepGrowth growth = GrowthPerStep(trace, device, steps, device.events.size());
  unseen.set_steps(static_cast<int64_t>(steps.count()));
  unseen.set_growth_bytes_per_step(growth.median);
  unseen.set_may_be_layers(MayBeLayers(steps, growth));
}

proto::TorchProfileChoice DescribeChoice(const ProfileChoice& choice) {
  proto::TorchProfileChoice described;
  described.set_release(std::string(choice.profile->release));
  described.set_inferred(choice.inferred());
  described.set_reason(ReasonOf(choice.reason));
  if (choice.fitting.size() < AllTorchProfiles().size()) {
    for (const TorchProfile* profile : choice.fitting) {
      described.add_fitting(std::string(profile->release));
    }
  }
  for (const std::string& key : choice.evidence) described.add_evidence(key);
  if (choice.rejected != nullptr) {
    described.set_rejected(std::string(choice.rejected->release));
    described.set_rejected_at_event(static_cast<int64_t>(choice.rejected_at));
  }
  described.set_why(TorchReason(described));
  return described;
}

proto::TorchProfileChoice DescribeChoice(const TorchProfile& profile, bool is_given) {
  proto::TorchProfileChoice described;
  described.set_release(std::string(profile.release));
  described.set_reason(is_given ? proto::TorchProfileChoice::given
                                : proto::TorchProfileChoice::no_file);
  described.set_why(TorchReason(described));
  return described;
}

}  // namespace memreplay

#include "report/ask/gpu.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <utility>

#include "report/device/device_report.h"
#include "report/device/inventory.h"
#include "report/words/lines.h"
#include "report/words/sizes.h"
#include "report/words/text.h"
#include "sim/confirm/device_run.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr size_t kTimelinePoints = 64;
constexpr size_t kUsedSamples = 256;
constexpr size_t kRegionsShown = 64;

int64_t Position(const RunPlan& plan, uint32_t request) {
  if (request == kBeforeFirstRequest) return -1;
  return static_cast<int64_t>(PositionOf(*plan.schedule, request));
}

proto::GpuFigures Figures(const RunPlan& plan, const DeviceRun& run) {
  proto::GpuFigures to;
  to.set_peak_reserved_bytes(run.peak.reserved().signed_value());
  to.set_peak_reserved_position(
      Position(plan, run.moments.peak_request[static_cast<size_t>(UsageKind::kReserved)]));
  to.set_peak_allocated_bytes(run.peak.allocated().signed_value());
  to.set_peak_active_bytes(run.peak.active().signed_value());
  to.set_peak_used_bytes(run.peak_used);
  to.set_peak_used_position(Position(plan, run.peak_used_request));
  to.set_used_at_peak_reserved_bytes(run.used_at_peak_reserved);
  to.set_used_at_end_bytes(run.used_at_end);
  to.set_decisions(std::ssize(run.decisions));
  to.set_alloc_retries(run.statistics.num_alloc_retries);
  for (const OomMoment& oom : run.ooms) {
    proto::GpuOom& moment = *to.add_ooms();
    moment.set_position(Position(plan, oom.request));
    moment.set_size_bytes(oom.size.signed_value());
    moment.set_free_bytes(oom.free.signed_value());
  }
  if (run.fragmentation.has_value()) {
    proto::GpuFragmentation& fragmentation = *to.mutable_fragmentation();
    fragmentation.set_reserved_minus_active_bytes(run.fragmentation->unused.signed_value());
    fragmentation.set_inactive_split_bytes(run.fragmentation->inactive_split.signed_value());
    fragmentation.set_internal_bytes(run.fragmentation->internal.signed_value());
    int64_t blocks = 0;
    for (const FreeSetUse& set : run.fragmentation->free_sets) {
      blocks += static_cast<int64_t>(set.blocks);
    }
    fragmentation.set_free_blocks(blocks);
  }
  const size_t step =
      std::max<size_t>(1, (run.timeline.size() + kTimelinePoints - 1) / kTimelinePoints);
  for (size_t i = 0; i < run.timeline.size(); i += step) {
    const size_t end = std::min(i + step, run.timeline.size());
    proto::GpuPoint& point = *to.add_timeline();
    point.set_event(static_cast<int64_t>(run.timeline[end - 1].last_event()));
    Usage highest;
    for (size_t j = i; j < end; ++j) {
      for (size_t kind = 0; kind < kUsageKinds; ++kind) {
        highest.bytes[kind] =
            std::max(highest.bytes[kind], run.timeline[j].highest[kind].usage.bytes[kind]);
      }
    }
    point.set_allocated_bytes(highest.allocated().signed_value());
    point.set_reserved_bytes(highest.reserved().signed_value());
  }
  return to;
}

proto::GpuComparison Comparison(const RunPlan& plan, const DecisionComparison& from) {
  proto::GpuComparison to;
  to.set_compared(static_cast<int64_t>(from.compared));
  to.set_equal(static_cast<int64_t>(from.equal));
  if (from.first.has_value()) {
    proto::GpuParting& first = *to.mutable_first();
    first.set_position(Position(plan, from.first->request));
    first.set_request(from.first->request);
    if (from.first->predicted) first.set_predicted(DescribeDecision(*from.first->predicted));
    if (from.first->measured) first.set_measured(DescribeDecision(*from.first->measured));
  }
  return to;
}

std::string DescribeCall(const MemoryCall& call) {
  std::string text = StrCat(MemoryCallName(call.kind), " of ", FormatSize(call.size));
  if (call.place.region != kNoRegion) StrAppend(&text, ", segment ", call.place.region);
  return StrCat(text, call.granted ? "" : ": refused", ", ", FormatSize(call.used),
                " in use after it");
}

proto::GpuCalls Calls(const RunPlan& plan, const MeasuredRun& from) {
  proto::GpuCalls to;
  to.set_compared(static_cast<int64_t>(from.calls_compared));
  to.set_predicted(static_cast<int64_t>(from.calls_predicted));
  to.set_measured(std::ssize(from.run.calls));
  if (from.calls_differ.has_value()) {
    proto::GpuParting& first = *to.mutable_first();
    const CallDifference& part = *from.calls_differ;
    const uint32_t request = part.measured ? part.measured->request : part.predicted->request;
    first.set_position(Position(plan, request));
    first.set_request(request);
    if (part.predicted) first.set_predicted(DescribeCall(*part.predicted));
    if (part.measured) first.set_measured(DescribeCall(*part.measured));
  }
  to.set_largest_used_difference_bytes(from.largest_used_difference);
  to.set_largest_used_difference_position(Position(plan, from.largest_used_difference_request));
  return to;
}

bool TakesMemory(MemoryCall::Kind kind) {
  return kind != MemoryCall::Kind::kReserve && kind != MemoryCall::Kind::kRelease;
}

// What the allocator holds, updated call by call.
class Holdings {
 public:
  void Apply(const MemoryCall& call) {
    if (!call.granted) return;
    switch (call.kind) {
      case MemoryCall::Kind::kAllocate:
      case MemoryCall::Kind::kReserve: {
        Region& region = held_[call.address];
        region = {call.size, Bytes(), call.place.region, call.kind == MemoryCall::Kind::kReserve};
        if (!region.is_reservation) reserved_ += call.size;
        break;
      }
      case MemoryCall::Kind::kFree:
        reserved_ -= call.size;
        held_.erase(call.address);
        break;
      case MemoryCall::Kind::kRelease: held_.erase(call.address); break;
      case MemoryCall::Kind::kMap:
        reserved_ += call.size;
        if (Region* region = At(call.address)) region->mapped += call.size;
        break;
      case MemoryCall::Kind::kUnmap:
        reserved_ -= call.size;
        if (Region* region = At(call.address)) region->mapped -= call.size;
        break;
    }
  }

  Bytes reserved() const { return reserved_; }

  void Describe(proto::GpuLayout* layout) const {
    layout->set_regions_held(std::ssize(held_));
    for (const auto& [address, region] : held_) {
      if (layout->regions_size() == static_cast<int>(kRegionsShown)) break;
      proto::GpuRegion& to = *layout->add_regions();
      to.set_address(static_cast<int64_t>(address.value()));
      to.set_size(region.size.signed_value());
      to.set_is_reservation(region.is_reservation);
      to.set_mapped(region.mapped.signed_value());
      to.set_number(region.number);
    }
  }

 private:
  struct Region {
    Bytes size;
    Bytes mapped;
    uint32_t number = 0;
    bool is_reservation = false;
  };

  Region* At(Address address) {
    auto it = held_.upper_bound(address);
    return it == held_.begin() ? nullptr : &std::prev(it)->second;
  }

  std::map<Address, Region> held_;
  Bytes reserved_;
};

proto::GpuLayout Layout(const DeviceRun& run) {
  proto::GpuLayout layout;
  Holdings holdings;
  std::set<Address> seen;
  uint64_t bits = 0;  // of all addresses, combined
  Address last;
  Address lowest(~uint64_t{0});
  Address highest;
  bool described = false;
  for (const MemoryCall& call : run.calls) {
    holdings.Apply(call);
    if (!described && TakesMemory(call.kind) && call.used == run.peak_used) {
      holdings.Describe(&layout);
      described = true;
    }
    const bool is_segment = call.kind == MemoryCall::Kind::kAllocate;
    if (!call.granted || (!is_segment && call.kind != MemoryCall::Kind::kReserve)) continue;
    lowest = std::min(lowest, call.address);
    highest = std::max(highest, call.address + call.size);
    if (!is_segment) {
      layout.set_reservations(layout.reservations() + 1);
      continue;
    }
    layout.set_segments(layout.segments() + 1);
    if (!last.is_null() && call.address > last) layout.set_ascending(layout.ascending() + 1);
    last = call.address;
    bits |= call.address.value();
    if (!seen.insert(call.address).second) layout.set_reused(layout.reused() + 1);
  }
  if (highest.is_null()) return layout;
  layout.set_lowest_address(static_cast<int64_t>(lowest.value()));
  layout.set_highest_address(static_cast<int64_t>(highest.value()));
  if (bits != 0) layout.set_alignment_bytes(int64_t{1} << std::countr_zero(bits));
  return layout;
}

void AddUsed(const RunPlan& plan, const MeasuredRun& measured, proto::GpuRun* gpu) {
  std::vector<proto::GpuUsedSample> samples;
  Holdings holdings;
  for (size_t i = 0; i < measured.run.calls.size(); ++i) {
    const MemoryCall& call = measured.run.calls[i];
    holdings.Apply(call);
    if (!TakesMemory(call.kind)) continue;
    proto::GpuUsedSample& sample = samples.emplace_back();
    sample.set_position(Position(plan, call.request));
    sample.set_predicted_bytes(i < measured.predicted_used.size() ? measured.predicted_used[i]
                                                                  : call.used);
    sample.set_measured_bytes(call.used);
    sample.set_reserved_bytes(holdings.reserved().signed_value());
  }
  // The moment of the highest value represents those that are left out.
  const size_t step = std::max<size_t>(1, (samples.size() + kUsedSamples - 1) / kUsedSamples);
  for (size_t i = 0; i < samples.size(); i += step) {
    const auto end =
        samples.begin() + static_cast<std::ptrdiff_t>(std::min(i + step, samples.size()));
    *gpu->add_used() = *std::max_element(
        samples.begin() + static_cast<std::ptrdiff_t>(i), end,
        [](const auto& a, const auto& b) { return a.measured_bytes() < b.measured_bytes(); });
  }
}

// Adds everything that makes the answer bad.
void AddFaults(const RunPlan& plan, const std::vector<MeasuredRun>& measured,
               const GpuRunContext& context, proto::GpuRun* gpu) {
  const auto add = [&](size_t repetition, int64_t position, const std::string& sentence) {
    proto::GpuFault& fault = *gpu->add_faults();
    fault.set_sentence(CleanText(sentence));
    fault.set_repetition(static_cast<int32_t>(repetition));
    fault.set_position(position);
  };
  const std::string unit = StrCat(PositionNoun(plan.schedule->is_program()), " ");
  for (size_t i = 0; i < measured.size(); ++i) {
    const MeasuredRun& run = measured[i];
    if (run.with_addresses.first.has_value()) {
      const DecisionDifference& first = *run.with_addresses.first;
      const int64_t position = Position(plan, first.request);
      add(i, position,
          StrCat("decisions diverge at ", unit, FormatCount(position),
                 " even with the driver's addresses: predicted ",
                 first.predicted ? DescribeDecision(*first.predicted) : "nothing more",
                 "; measured ",
                 first.measured ? DescribeDecision(*first.measured) : "nothing more"));
    }
    if (run.calls_differ.has_value()) {
      const CallDifference& part = *run.calls_differ;
      const int64_t position =
          Position(plan, part.measured ? part.measured->request : part.predicted->request);
      add(i, position,
          StrCat("the device responds differently at ", unit, FormatCount(position), ": predicted ",
                 part.predicted ? DescribeCall(*part.predicted) : "no call", "; measured ",
                 part.measured ? DescribeCall(*part.measured) : "no call"));
    }
    if (run.run.violation.has_value()) {
      add(i, static_cast<int64_t>(run.run.violation->event),
          StrCat("impossible memory layout: ", run.run.violation->message));
    }
  }
  for (const std::string& sentence : context.verify_faults) add(0, -1, sentence);
}

RunBackend BackendOf(const ReplaySettings& settings) {
  return settings.config.backend == Backend::kNative ? RunBackend::kNative : RunBackend::kAsync;
}

}  // namespace

std::string ShortageSentence(const RunPlan& plan, const Shortage& shortage) {
  return StrCat("the file needs ", shortage.at_least ? "at least " : "",
                FormatSizeExactly(shortage.needed), " and the device has ",
                FormatSizeExactly(shortage.free.signed_value()), " free; memory would run out at ",
                PositionNoun(plan.schedule->is_program()), " ",
                FormatCount(Position(plan, shortage.request)));
}

proto::DeviceReport ReportGpu(const RunPlan& plan, const proto::RecordedPeaks& recorded,
                              const DeviceRun& predicted, const std::vector<MeasuredRun>& measured,
                              GpuRunContext context) {
  proto::DeviceReport report = ReportDeviceRun(plan, recorded, measured.front().run);
  if (recorded.ooms() > report.ooms()) {
    report.add_notes(StrCat("the recording ran out of memory ",
                            FormatCount(recorded.ooms(), "time"), ", this run ",
                            FormatCount(report.ooms(), "time"),
                            "; --capacity makes the device as small as in the recording"));
  }
  proto::GpuRun& gpu = *report.mutable_gpu();
  *gpu.mutable_card() = std::move(context.card);
  gpu.set_backend(plan.backend == RunBackend::kNative   ? proto::GpuRun::native
                  : plan.backend == RunBackend::kDirect ? proto::GpuRun::direct
                                                        : proto::GpuRun::async);
  gpu.set_pace(context.pace);
  gpu.set_repetitions(static_cast<int32_t>(measured.size()));
  if (context.verification.has_value()) *gpu.mutable_verification() = *context.verification;
  *gpu.mutable_predicted() = Figures(plan, predicted);
  AddFaults(plan, measured, context, &gpu);
  for (proto::GpuTime& time : context.times) *gpu.add_times() = std::move(time);
  const MeasuredRun& first = measured.front();
  *gpu.mutable_measured() = Figures(plan, first.run);
  *gpu.mutable_as_predicted() = Comparison(plan, first.as_predicted);
  *gpu.mutable_with_addresses() = Comparison(plan, first.with_addresses);
  gpu.set_predicted_peak_reserved_with_addresses_bytes(first.placed_peak_reserved.signed_value());
  gpu.set_predicted_peak_used_with_addresses_bytes(first.placed_peak_used);
  *gpu.mutable_calls() = Calls(plan, first);
  AddUsed(plan, first, &gpu);
  *gpu.mutable_layout() = Layout(first.run);
  for (size_t i = 0; i < measured.size(); ++i) {
    proto::GpuRepetition& repetition = *gpu.add_runs();
    if (i < context.repetitions.size()) repetition = std::move(context.repetitions[i]);
    repetition.set_peak_reserved_bytes(measured[i].run.peak.reserved().signed_value());
    repetition.set_peak_used_bytes(measured[i].run.peak_used);
    repetition.set_same_decisions(CompareDecisions(first.run.decisions, measured[i].run.decisions,
                                                   plan.backend == RunBackend::kAsync
                                                       ? DecisionScope::kRequests
                                                       : DecisionScope::kAll)
                                      .all_equal());
  }
  return report;
}

// Adds the times of one repetition to those of all. Medians are those of the repetition with most
// calls of that kind.
void GpuAsker::Merge(const std::vector<proto::GpuTime>& from, Times* to) {
  for (const proto::GpuTime& time : from) {
    const auto [it, is_new] =
        to->row.try_emplace(std::make_pair(time.call(), time.size()), to->rows.size());
    if (is_new) {
      to->rows.push_back(time);
      continue;
    }
    proto::GpuTime& same = to->rows[it->second];
    if (time.count() > same.count()) same.set_median_ns(time.median_ns());
    same.set_count(same.count() + time.count());
    same.set_refused(same.refused() + time.refused());
    same.set_total_ns(same.total_ns() + time.total_ns());
    same.set_min_ns(std::min(same.min_ns(), time.min_ns()));
    same.set_max_ns(std::max(same.max_ns(), time.max_ns()));
  }
}

absl::StatusOr<proto::DeviceReport> GpuAsker::Ask(const std::string& file, const Study& study,
                                                  ProgressSink* progress) {
  const Schedule& schedule = study.schedule();
  // Addresses are chosen as on this machine, not as in the recording: CUDA GPUs are driven on
  // Linux.
  ReplaySettings settings = study.settings();
  settings.order = AddressOrder::kChunksDownwards;
  const proto::RecordedPeaks recorded = DescribeContents(schedule).peaks;
  std::vector<int64_t> due;
  if (question_.at_recorded_pace) {
    due = RequestTimes(schedule);
    if (due.empty()) {
      return InvalidArgument(
          file, ": --pace recorded: the file does not record when its requests were made");
    }
  }
  RunPlan plan;
  plan.schedule = &schedule;
  plan.settings = &settings;
  plan.backend = question_.backend.value_or(BackendOf(settings));

  GpuRunContext context;
  context.pace = question_.at_recorded_pace ? proto::GpuRun::recorded : proto::GpuRun::none;
  context.card = card_.Describe();
  const Bytes free(static_cast<uint64_t>(context.card.free_bytes()));
  const Bytes total =
      settings.capacity.value_or(Bytes(static_cast<uint64_t>(context.card.total_bytes())));
  const Bytes simulated_free = settings.capacity.value_or(free);
  progress->SetActivity(StrCat("predicting ", file));
  PlanStart(question_.start, total, simulated_free, &plan);
  ASSIGN_OR_RETURN(DeviceRun predicted, RunSimulated(plan, total, simulated_free));
  if (const auto shortage = FindShortage(plan, predicted, free, settings.capacity,
                                         static_cast<uint64_t>(recorded.ooms()));
      shortage.has_value()) {
    return absl::ResourceExhaustedError(
        StrCat(file, ": too large for GPU ", context.card.index(), " (", context.card.name(),
               "): ", ShortageSentence(plan, *shortage), "; nothing was allocated"));
  }

  Times taken;
  std::vector<MeasuredRun> measured;
  const int64_t repetitions = question_.repetitions;
  for (int64_t i = 0; i < repetitions; ++i) {
    progress->SetActivity(StrCat("replaying ", file, " on ", context.card.name(),
                                 repetitions > 1 ? StrCat(", ", i + 1, " of ", repetitions) : ""));
    progress->SetTotal(schedule.requests().size());
    absl::StatusOr<DeviceRun> run = Measure(plan, due, &context, &taken);
    if (!run.ok()) return Within(file, run.status());
    ASSIGN_OR_RETURN(MeasuredRun held, CompareWithPrediction(plan, predicted, *std::move(run)));
    measured.push_back(std::move(held));
  }
  context.times = std::move(taken.rows);
  return ReportGpu(plan, recorded, predicted, measured, std::move(context));
}

absl::Status GpuAsker::MeasureCosts() {
  const absl::Status measured = card_.MeasureCosts();
  Merge(card_.TakeTimes(), &times_);
  return measured;
}

proto::GpuCosts GpuAsker::Costs() {
  proto::GpuCosts costs;
  const proto::GpuCard card = card_.Describe();
  costs.set_card(card.name());
  costs.set_driver(card.driver());
  for (const proto::GpuTime& time : times_.rows) *costs.add_times() = time;
  return costs;
}

// Runs the plan on the GPU. Releases everything, whether or not it succeeds.
absl::StatusOr<DeviceRun> GpuAsker::Measure(const RunPlan& plan, const std::vector<int64_t>& due,
                                            GpuRunContext* context, Times* all_taken) {
  GpuSessionOptions session_options;
  session_options.capacity = plan.settings->capacity;
  session_options.by_ballast = question_.by_ballast;
  session_options.explicit_completion = CompletesExplicitly(*plan.schedule);
  session_options.verify = question_.verify;
  session_options.async = plan.backend == RunBackend::kAsync;
  auto session = card_.Start(session_options);
  if (!session.ok()) return session.status();
  context->card.set_capacity_bytes(plan.settings->capacity.value_or(Bytes()).signed_value());
  context->card.set_ballast_bytes((*session)->ballast().signed_value());
  card_.TakeTimes();  // discards those of the preparation

  const std::unique_ptr<Pacer> pacer = question_.make_pacer(**session, due);
  RunWatch watch = (*session)->Watch();
  ObserverList observers = {pacer.get(), watch.extra};
  watch.extra = &observers;
  watch.intervention = pacer.get();
  absl::StatusOr<DeviceRun> run = RunOnDevice(plan, (*session)->device(), std::move(watch));
  const std::vector<proto::GpuTime> taken = card_.TakeTimes();
  (*session)->AddVerification(&context->verification, &context->verify_faults);
  RETURN_IF_ERROR((*session)->Close());
  if (!run.ok()) return run;
  if (const std::string by = pacer->stopped_by(); !by.empty()) {
    return absl::CancelledError(StrCat("stopped by ", by, " at request ", run->moments.requests,
                                       " of ", plan.schedule->requests().size(),
                                       "; all memory was released"));
  }
  proto::GpuRepetition& repetition = context->repetitions.emplace_back();
  repetition.set_wall_ns(pacer->taken_ns());
  for (const proto::GpuTime& time : taken) {
    repetition.set_driver_ns(repetition.driver_ns() + time.total_ns());
    repetition.set_driver_calls(repetition.driver_calls() + time.count());
  }
  Merge(taken, all_taken);
  Merge(taken, &times_);
  return run;
}

}  // namespace memreplay

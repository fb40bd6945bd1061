#include "sim/confirm/device_run.h"

#include <algorithm>
#include <cstdlib>

#include "sim/device/simulated_device.h"
#include "sim/recording/start_state.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"
#include "trace/value/trace.h"

namespace memreplay {
namespace {

constexpr size_t kTimelineBuckets = 256;

// An observer that logs what a real pool reports, because the pool takes its memory without a call
// to the device.
class PoolWatcher final : public Observer {
 public:
  explicit PoolWatcher(WatchedDevice& device) : device_(device) {}
  void OnEvent(const Event& event) override {
    if (event.kind == EventKind::kSegmentMap || event.kind == EventKind::kSegmentUnmap) {
      device_.NotePoolChange(event.kind == EventKind::kSegmentMap, event.size);
    }
  }

 private:
  WatchedDevice& device_;
};

// Finds peaks of the device's own figures in the log of its calls.
void FindPeakUsed(DeviceRun* run) {
  const uint32_t reserved_at = run->moments.peak_request[static_cast<size_t>(UsageKind::kReserved)];
  for (const MemoryCall& call : run->calls) {
    if (call.used > run->peak_used) {
      run->peak_used = call.used;
      run->peak_used_request = call.request;
    }
    // The calls of the start come first, with a number above all others.
    if (call.request == kBeforeFirstRequest ||
        (reserved_at != kBeforeFirstRequest && call.request <= reserved_at)) {
      run->used_at_peak_reserved = call.used;
    }
  }
}

// Returns the first calls that the device could not grant because memory ran out (and not because
// the schedule injects failures), one per request.
std::vector<const MemoryCall*> RealRefusals(const DeviceRun& run) {
  std::vector<const MemoryCall*> refusals;
  for (const OomMoment& oom : run.ooms) {
    const auto refused =
        std::find_if(run.calls.begin(), run.calls.end(), [&](const MemoryCall& call) {
          return call.request == oom.request && !call.granted &&
                 call.used + RoundUp(call.size, MiB(2)).signed_value() >
                     run.free_before.signed_value();
        });
    if (refused != run.calls.end()) refusals.push_back(&*refused);
  }
  return refusals;
}

void CompareCalls(absl::Span<const MemoryCall> predicted, MeasuredRun* result) {
  const absl::Span<const MemoryCall> measured = result->run.calls;
  result->calls_predicted = predicted.size();
  for (size_t i = 0; i < std::max(predicted.size(), measured.size()); ++i) {
    if (i == predicted.size() || i == measured.size() || predicted[i].kind != measured[i].kind ||
        predicted[i].size != measured[i].size || predicted[i].granted != measured[i].granted ||
        predicted[i].request != measured[i].request) {
      CallDifference& part = result->calls_differ.emplace();
      if (i < predicted.size()) part.predicted = predicted[i];
      if (i < measured.size()) part.measured = measured[i];
      return;
    }
    ++result->calls_compared;
    result->predicted_used.push_back(predicted[i].used);
    const int64_t difference = measured[i].used - predicted[i].used;
    if (std::abs(difference) > std::abs(result->largest_used_difference)) {
      result->largest_used_difference = difference;
      result->largest_used_difference_request = measured[i].request;
    }
  }
}

bool IsDecision(EventKind kind) { return IsTraced(kind) && kind != EventKind::kSnapshot; }

// Returns the position of the next decision from `at` on that is in the scope.
size_t Next(absl::Span<const Decision> decisions, size_t at, DecisionScope scope) {
  if (scope == DecisionScope::kRequests) {
    while (at < decisions.size() && IsSegmentEvent(decisions[at].event.kind)) ++at;
  }
  return at;
}

}  // namespace

void PlanStart(StartPolicy wanted, Bytes total, Bytes free, RunPlan* plan) {
  const Schedule& schedule = *plan->schedule;
  plan->start = wanted;
  if (schedule.is_cold()) return;
  if (plan->backend != RunBackend::kNative) {
    plan->start = StartPolicy::kFresh;
    plan->start_note = "this backend cannot start with existing segments";
  }
  if (plan->start == StartPolicy::kFresh) return;
  plan->start_segments =
      RebuildStartState(schedule, plan->settings->recorded_config, *plan->settings->torch.profile)
          .segments;
  SimulatedDevice trial({.capacity = total, .order = plan->settings->order});
  trial.TakeOutside(total - free);
  if (const auto fits = RelocateSegments(plan->start_segments, trial); !fits.ok()) {
    plan->start = StartPolicy::kFresh;
    plan->start_note = std::string(fits.status().message());
    plan->start_segments.clear();
  }
}

absl::StatusOr<DeviceRun> RunOnDevice(const RunPlan& plan, Device& device, RunWatch watch) {
  DeviceRun result;
  result.total = device.TotalMemory();
  result.free_before = device.FreeMemory();
  WatchedDevice watched(device, watch.free_memory);

  UsageObserver usage;
  TimelineObserver timeline(usage, kTimelineBuckets);
  FragmentationOptions look;
  look.may_give_up = false;  // a real device runs only once
  MomentsObserver moments(usage);
  FragmentationObserver fragmentation(usage, moments, look);
  DecisionLog decisions(watched);
  OverlapChecker checker;
  PoolWatcher pool(watched);
  // The driver manages its own pool, and a simulated one has no addresses.
  const bool is_checked = plan.backend != RunBackend::kAsync;
  ObserverList observers = {&usage,
                            &timeline,
                            &moments,
                            &fragmentation,
                            &decisions,
                            is_checked ? &checker : nullptr,
                            watch.async != nullptr ? &pool : nullptr,
                            watch.extra};
  ReplayPlan replay_plan{.schedule = plan.schedule,
                         .profile = plan.settings->torch.profile,
                         .config = &plan.settings->config,
                         .fraction = plan.settings->fraction,
                         .backend = plan.backend,
                         .async = watch.async.get()};
  replay_plan.start = {.policy = plan.start, .segments = &plan.start_segments};
  absl::StatusOr<ReplayResult> replay =
      Replay(replay_plan, watched, observers, {.intervention = watch.intervention});

  result.calls.assign(watched.calls().begin(), watched.calls().end());
  watch.async.reset();
  watched.ReleaseAll();
  if (!replay.ok()) return replay.status();
  result.run = std::move(replay->run);
  result.statistics = replay->statistics;
  result.moments = moments.moments();
  result.ooms = moments.ooms();
  result.events = usage.events();
  result.peak = usage.peak();
  result.decisions = decisions.Take();
  result.timeline = timeline.buckets();
  result.fragmentation = fragmentation.sample();
  if (is_checked) result.violation = checker.violation();
  FindPeakUsed(&result);
  result.used_at_end = watched.UsedNow();
  return result;
}

absl::StatusOr<DeviceRun> RunSimulated(const RunPlan& plan, Bytes total, Bytes free,
                                       const std::vector<MemoryCall>* placed) {
  SimulatedDevice device({.capacity = total,
                          .order = plan.settings->order,
                          .explicit_completion = CompletesExplicitly(*plan.schedule)});
  device.TakeOutside(total - std::min(total, free));
  if (placed == nullptr) return RunOnDevice(plan, device);
  RelocatedDevice relocated(device, *placed);
  return RunOnDevice(plan, relocated);
}

std::optional<Shortage> FindShortage(const RunPlan& plan, const DeviceRun& predicted, Bytes free,
                                     std::optional<Bytes> asked, uint64_t recorded_ooms) {
  if (asked.has_value()) {
    if (predicted.peak_used <= free.signed_value()) return std::nullopt;
    return Shortage{predicted.peak_used, false, free, predicted.peak_used_request};
  }
  const std::vector<const MemoryCall*> refusals = RealRefusals(predicted);
  if (refusals.size() <= recorded_ooms) return std::nullopt;
  const MemoryCall& first = *refusals.front();
  Shortage shortage{first.used + first.size.signed_value(), true, free, first.request};
  // A fraction refers to the device's memory and would mean another amount there.
  if (!plan.settings->fraction.has_value()) {
    const absl::StatusOr<DeviceRun> unlimited =
        RunSimulated(plan, SimulatedDevice::kUnlimitedTotal, SimulatedDevice::kUnlimitedTotal);
    if (unlimited.ok() && unlimited->ooms.empty()) {
      shortage.needed = unlimited->peak_used;
      shortage.at_least = false;
    }
  }
  return shortage;
}

absl::StatusOr<MeasuredRun> CompareWithPrediction(const RunPlan& plan, const DeviceRun& predicted,
                                                  DeviceRun run) {
  MeasuredRun measured;
  measured.run = std::move(run);
  const DecisionScope scope =
      plan.backend == RunBackend::kAsync ? DecisionScope::kRequests : DecisionScope::kAll;
  measured.as_predicted = CompareDecisions(predicted.decisions, measured.run.decisions, scope);
  ASSIGN_OR_RETURN(
      const DeviceRun placed,
      RunSimulated(plan, measured.run.total, measured.run.free_before, &measured.run.calls));
  measured.with_addresses = CompareDecisions(placed.decisions, measured.run.decisions, scope);
  measured.placed_peak_reserved = placed.peak.reserved();
  measured.placed_peak_used = placed.peak_used;
  // How the driver grows its own pool is not predicted.
  if (plan.backend != RunBackend::kAsync) CompareCalls(placed.calls, &measured);
  return measured;
}

uint64_t PositionOf(const Schedule& schedule, uint32_t request) {
  if (schedule.is_program() || request >= schedule.recorded_begin().size()) return request;
  return schedule.recorded_begin()[request];
}

std::vector<int64_t> RequestTimes(const Schedule& schedule) {
  const auto& devices = schedule.trace().devices;
  const auto device = std::find_if(devices.begin(), devices.end(), [&](const DeviceTrace& d) {
    return d.device == schedule.device();
  });
  if (schedule.is_program() || device == devices.end() ||
      device->time_us.size() < schedule.recorded().size() || schedule.requests().empty()) {
    return {};
  }
  const absl::Span<const uint32_t> begins = schedule.recorded_begin();
  const std::vector<int64_t>& recorded = device->time_us;
  std::vector<int64_t> times;
  times.reserve(begins.size());
  int64_t now = begins[0] < recorded.size() ? recorded[begins[0]] : 0;
  const int64_t first = now;
  for (size_t i = 0; i < begins.size(); ++i) {
    const size_t end = i + 1 < begins.size() ? begins[i + 1] : recorded.size();
    if (begins[i] < end && begins[i] < recorded.size()) now = std::max(now, recorded[begins[i]]);
    times.push_back(now - first);
  }
  return times;
}

bool SameDecision(const Decision& a, const Decision& b, DecisionScope scope) {
  return a.event.kind == b.event.kind && a.event.size == b.event.size &&
         a.event.stream == b.event.stream && a.event.pool == b.event.pool &&
         a.event.id == b.event.id &&
         (scope == DecisionScope::kRequests ||
          (a.event.block_size == b.event.block_size && a.place == b.place));
}

void DecisionLog::OnEvent(const Event& event) {
  if (!IsDecision(event.kind)) return;
  const Place place = event.kind == EventKind::kOom ? Place{} : device_.PlaceOf(event.address);
  decisions_.push_back({event, request_, place});
}

DecisionComparison CompareDecisions(absl::Span<const Decision> predicted,
                                    absl::Span<const Decision> measured, DecisionScope scope) {
  DecisionComparison result;
  size_t p = Next(predicted, 0, scope);
  size_t m = Next(measured, 0, scope);
  while (p < predicted.size() || m < measured.size()) {
    ++result.compared;
    const Decision* a = p < predicted.size() ? &predicted[p] : nullptr;
    const Decision* b = m < measured.size() ? &measured[m] : nullptr;
    // A decision has no counterpart if the other run has no more of them in this request.
    if (a != nullptr && b != nullptr && a->request != b->request) {
      (a->request < b->request ? b : a) = nullptr;
    }
    if (a != nullptr && b != nullptr && SameDecision(*a, *b, scope)) {
      ++result.equal;
    } else if (!result.first.has_value()) {
      DecisionDifference& first = result.first.emplace();
      first.request = a != nullptr ? a->request : b->request;
      if (a != nullptr) first.predicted = *a;
      if (b != nullptr) first.measured = *b;
    }
    if (a != nullptr) p = Next(predicted, p + 1, scope);
    if (b != nullptr) m = Next(measured, m + 1, scope);
  }
  return result;
}

std::string DescribeDecision(const Decision& decision) {
  const Event& event = decision.event;
  std::string text = StrCat(EventKindName(event.kind), " of ", event.size.value(),
                            " bytes on stream ", event.stream);
  if (event.block_size != Bytes() && event.block_size != event.size) {
    StrAppend(&text, ", extent ", event.block_size.value());
  }
  if (decision.place.region != kNoRegion) {
    StrAppend(&text, ", in segment ", decision.place.region, " at offset ",
              decision.place.offset.value());
  }
  return text;
}

}  // namespace memreplay

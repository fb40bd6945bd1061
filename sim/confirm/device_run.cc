#include "sim/confirm/device_run.h"

#include <algorithm>
#include <utility>

#include "sim/device/relocated_device.h"
#include "sim/device/simulated_device.h"
#include "sim/recording/start_state.h"

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

}  // namespace memreplay

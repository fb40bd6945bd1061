#include "sim/confirm/device_run.h"

#include <algorithm>
#include <utility>

#include "sim/device/relocated_device.h"
#include "sim/device/simulated_device.h"
#include "sim/model/caching_allocator.h"
#include "sim/model/cuda_malloc_async_allocator.h"
#include "sim/model/direct_allocator.h"
#include "sim/recording/start_state.h"
#include "sim/run/prepare_run.h"
#include "sim/settings/size_rules.h"

namespace memreplay {
namespace {

constexpr size_t kTimelineBuckets = 256;

// Notes moments of a run.
class Moments final : public Observer, public RequestListener {
 public:
  // `usage` must see each event before this does.
  Moments(const UsageObserver& usage, DeviceRun* run)
      : usage_(usage), run_(*run), peak_(usage.peak()) {
    run_.peak_request.fill(kBeforeFirstRequest);
  }

  void OnRequest(size_t request) override {
    request_ = static_cast<uint32_t>(request);
    ++run_.requests;
  }

  void OnEvent(const Event& event) override {
    if (event.kind == EventKind::kOom) {
      run_.ooms.push_back({request_, event.size, Bytes(event.address.value())});
    }
    for (size_t kind = 0; kind < kUsageKinds; ++kind) {
      if (usage_.peak().bytes[kind] > peak_.bytes[kind]) {
        peak_.bytes[kind] = usage_.peak().bytes[kind];
        run_.peak_request[kind] = request_;
      }
    }
  }

 private:
  const UsageObserver& usage_;
  DeviceRun& run_;
  Usage peak_;
  uint32_t request_ = 0;
};

std::unique_ptr<Allocator> MakeAllocator(const RunPlan& plan, std::unique_ptr<Allocator> async,
                                         Device& device) {
  const Schedule& schedule = *plan.schedule;
  switch (plan.backend) {
    case RunBackend::kDirect:
      return std::make_unique<DirectAllocator>(
          device, DirectAllocatorOptions{schedule.trace().streams, schedule.trace().pools});
    case RunBackend::kAsync:
      if (async != nullptr) return async;
      return std::make_unique<CudaMallocAsyncAllocator>(device);
    case RunBackend::kNative: break;
  }
  return std::make_unique<CachingAllocator>(*plan.settings->torch.profile, plan.settings->config,
                                            device, AllocatorOptionsFor(schedule));
}

// A real pool takes its memory without asking the device: what it says is logged.
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

// Peaks of the device's own figures, from the log of its calls.
void FindPeakUsed(DeviceRun* run) {
  const uint32_t reserved_at = run->peak_request[static_cast<size_t>(UsageKind::kReserved)];
  for (const MemoryCall& call : run->calls) {
    if (call.used > run->peak_used) {
      run->peak_used = call.used;
      run->peak_used_request = call.request;
    }
    // The calls of the start come first, under a number above all others.
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
    plan->start_note = "this backend has no segments to begin with";
  }
  if (plan->start == StartPolicy::kFresh) return;
  plan->start_segments =
      RebuildStartState(schedule, plan->settings->recorded_config, *plan->settings->torch.profile)
          .segments;
  SimulatedDevice trial(total);
  trial.TakeOutside(total - free);
  if (const auto fits = RelocateSegments(plan->start_segments, trial); !fits.ok()) {
    plan->start = StartPolicy::kFresh;
    plan->start_note = std::string(fits.status().message());
    plan->start_segments.clear();
  }
}

absl::StatusOr<DeviceRun> RunOnDevice(const RunPlan& plan, Device& device, RunWatch watch) {
  const Schedule& schedule = *plan.schedule;
  DeviceRun result;
  result.total = device.TotalMemory();
  result.free_before = device.FreeMemory();
  WatchedDevice watched(device, watch.free_memory);
  const bool is_real_pool = watch.async != nullptr;
  std::unique_ptr<Allocator> allocator = MakeAllocator(plan, std::move(watch.async), watched);

  const auto run = [&]() -> absl::Status {
    if (plan.settings->fraction.has_value()) {
      const absl::Status set = allocator->SetMemoryFraction(*plan.settings->fraction);
      if (!set.ok()) return set;
    }
    UsageObserver before;
    std::optional<OverlapChecker> checker(std::in_place);
    // The driver's pool is its own affair, and a simulated one has no addresses.
    if (plan.backend == RunBackend::kAsync) checker.reset();
    if (plan.start == StartPolicy::kRecorded && !plan.start_segments.empty()) {
      const absl::StatusOr<MemoryState> start = RelocateSegments(plan.start_segments, watched);
      if (!start.ok()) return start.status();
      static_cast<CachingAllocator&>(*allocator).Restore(*start);
      before = UsageObserver(UsageOf(*start));
      checker.emplace(*start);
    } else {
      ObserverList starters = {&before};
      if (checker.has_value()) starters.Add(&*checker);
      if (watch.extra != nullptr) starters.Add(watch.extra);
      if (const absl::Status started = AllocateStart(schedule, *allocator, starters);
          !started.ok()) {
        return started;
      }
    }

    UsageObserver usage(before.current());
    TimelineObserver timeline(usage, kTimelineBuckets);
    FragmentationOptions fragmentation_options;
    fragmentation_options.at_event = plan.sample_at.value_or(UsageObserver::kAtStart);
    if (plan.backend == RunBackend::kNative) {
      fragmentation_options.block_size_for = [&](Bytes size) {
        return RoundSize(size, static_cast<const CachingAllocator&>(*allocator).config(),
                         *plan.settings->torch.profile);
      };
    }
    FragmentationObserver fragmentation(*allocator, usage, fragmentation_options);
    Moments moments(usage, &result);
    DecisionLog decisions(watched);
    ObserverList observers = {&usage, &timeline, &fragmentation, &moments, &decisions};
    if (checker.has_value()) observers.Add(&*checker);
    PoolWatcher pool(watched);
    if (is_real_pool) observers.Add(&pool);
    if (watch.extra != nullptr) observers.Add(watch.extra);
    RunOptions options;
    options.listeners = watch.listeners;
    for (RequestListener* listener :
         std::initializer_list<RequestListener*>{&watched, &moments, &decisions}) {
      options.listeners.push_back(listener);
    }
    options.intervention = watch.intervention;
    result.run = Run(schedule, *allocator, observers, options);
    fragmentation.Finish();
    if (watch.at_end) watch.at_end();

    result.events = usage.events();
    result.peak = usage.peak();
    for (size_t kind = 0; kind < kUsageKinds; ++kind) {
      result.peak_event[kind] = usage.peak_event(static_cast<UsageKind>(kind));
    }
    result.statistics = allocator->statistics();
    result.decisions = decisions.Take();
    result.timeline = timeline.buckets();
    result.fragmentation = fragmentation.sample();
    if (checker.has_value()) result.violation = checker->violation();
    return absl::OkStatus();
  };
  const absl::Status ran = run();

  result.calls.assign(watched.calls().begin(), watched.calls().end());
  allocator.reset();
  watched.GiveBack();
  if (!ran.ok()) return ran;
  FindPeakUsed(&result);
  result.used_at_end = watched.UsedNow();
  return result;
}

absl::StatusOr<DeviceRun> RunSimulated(const RunPlan& plan, Bytes total, Bytes free,
                                       const std::vector<MemoryCall>* placed) {
  SimulatedDevice device(
      {.capacity = total, .explicit_completion = CompletesExplicitly(*plan.schedule)});
  device.TakeOutside(total - std::min(total, free));
  if (placed == nullptr) return RunOnDevice(plan, device);
  RelocatedDevice relocated(device, *placed);
  RunWatch watch;
  watch.listeners = {&relocated};
  return RunOnDevice(plan, relocated, std::move(watch));
}

}  // namespace memreplay

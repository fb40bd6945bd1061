#include "sim/whatif/what_if.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sim/device/simulated_device.h"
#include "sim/model/caching_allocator.h"
#include "sim/model/cuda_malloc_async_allocator.h"
#include "sim/recording/start_state.h"
#include "sim/run/prepare_run.h"
#include "sim/settings/size_rules.h"

namespace memreplay {
namespace {

SimulatedDevice::Options DeviceOptions(const Schedule& schedule, const ReplaySettings& settings) {
  SimulatedDevice::Options options;
  options.capacity = settings.capacity;
  options.explicit_completion = CompletesExplicitly(schedule);
  return options;
}

DeviceCalls Difference(const DeviceCalls& now, const DeviceCalls& before) {
  DeviceCalls calls;
  calls.segment_allocs = now.segment_allocs - before.segment_allocs;
  calls.segment_frees = now.segment_frees - before.segment_frees;
  calls.maps = now.maps - before.maps;
  calls.unmaps = now.unmaps - before.unmaps;
  calls.waits = now.waits - before.waits;
  return calls;
}

// Notes the moments that a result tells of: the first out of memory, and what was
// in use when reserved memory peaked.
class MomentObserver final : public Observer, public RequestListener {
 public:
  // `usage` must see each event before this does.
  MomentObserver(const UsageObserver& usage, WhatIfResult& result)
      : usage_(usage), result_(result), peak_(usage.current().reserved()) {
    result.at_peak = usage.current();
  }
  void OnRequest(size_t request) override { request_ = request; }
  void OnEvent(const Event& event) override {
    if (event.kind == EventKind::kOom) {
      if (!result_.first_oom.has_value()) result_.first_oom = request_;
    } else if (event.kind != EventKind::kAlloc) {
      return;
    }
    // Memory is obtained within a request, whose last event is one of the two.
    if (usage_.peak().reserved() <= peak_) return;
    peak_ = usage_.peak().reserved();
    result_.at_peak = usage_.current();
  }

 private:
  const UsageObserver& usage_;
  WhatIfResult& result_;
  Bytes peak_;
  uint64_t request_ = 0;
};

}  // namespace

absl::StatusOr<WhatIfResult> ReplayWhatIf(const Schedule& schedule, const ReplaySettings& settings,
                                          Observer* extra, const WhatIfOptions& options) {
  WhatIfResult result;
  result.start = options.start;
  MemoryState start;
  if (settings.config.backend != Backend::kNative) {
    result.start = StartPolicy::kFresh;
    if (!schedule.is_cold()) result.start_note = "the driver's pool has no segments to begin with";
  } else if (options.start == StartPolicy::kRecorded && !schedule.is_cold()) {
    start = options.recorded_start != nullptr
                ? *options.recorded_start
                : RebuildStartState(schedule, settings.recorded_config, *settings.torch.profile)
                      .segments;
    SimulatedDevice trial(DeviceOptions(schedule, settings));
    if (const auto fits = RelocateSegments(start, trial); !fits.ok()) {
      result.start = StartPolicy::kFresh;
      result.start_note = std::string(fits.status().message());
    }
  }
  // One run; a second samples what the first has found to be the peak.
  const auto run_once = [&](Observer* watcher, const uint64_t* sample_at) -> absl::Status {
    SimulatedDevice::Options device_options = DeviceOptions(schedule, settings);
    device_options.costs = options.costs;
    SimulatedDevice device(device_options);
    // The driver's pool knows no segments to begin with: its start is allocated.
    std::optional<CachingAllocator> caching;
    std::optional<CudaMallocAsyncAllocator> async;
    if (settings.config.backend == Backend::kNative) {
      caching.emplace(*settings.torch.profile, settings.config, device,
                      AllocatorOptionsFor(schedule));
    } else {
      async.emplace(device);
    }
    Allocator& allocator = caching.has_value() ? static_cast<Allocator&>(*caching) : *async;
    if (settings.fraction.has_value()) {
      const absl::Status set = allocator.SetMemoryFraction(*settings.fraction);
      if (!set.ok()) return set;
    }
    UsageObserver before;
    if (result.start == StartPolicy::kRecorded) {
      const absl::StatusOr<MemoryState> relocated = RelocateSegments(start, device);
      if (!relocated.ok()) return relocated.status();
      if (!relocated->empty()) caching->Restore(*relocated);
      before = UsageObserver(UsageOf(*relocated));
    } else if (const absl::Status started = AllocateStart(schedule, allocator, before);
               !started.ok()) {
      return started;
    }
    const auto ooms_before = static_cast<uint64_t>(allocator.ooms());
    UsageObserver usage(before.current());
    ObserverList observers = {&usage};
    std::optional<FragmentationObserver> fragmentation;
    if (sample_at != nullptr) {
      FragmentationOptions fragmentation_options;
      fragmentation_options.at_event = *sample_at;
      fragmentation_options.keep_segments = options.keep_segments;
      fragmentation_options.block_size_for = [&caching, &settings](Bytes size) {
        return caching.has_value() ? RoundSize(size, caching->config(), *settings.torch.profile)
                                   : size;
      };
      fragmentation.emplace(allocator, usage, fragmentation_options);
      observers.Add(&*fragmentation);
    }
    if (watcher != nullptr) observers.Add(watcher);
    RunOptions run_options = options.run;
    MomentObserver moments(usage, result);
    if (sample_at == nullptr) {
      observers.Add(&moments);
      run_options.listeners.push_back(&moments);
      if (options.observe) {
        Observer* const observer = options.observe(allocator);
        if (observer != nullptr) observers.Add(observer);
      }
    }
    const DeviceCalls calls_before = device.calls();
    const double nanoseconds_before = device.call_nanoseconds();
    RunResult run = Run(schedule, allocator, observers, run_options);
    if (fragmentation.has_value()) {
      fragmentation->Finish();
      result.fragmentation = fragmentation->sample();
      return absl::OkStatus();
    }
    result.run = std::move(run);
    result.run.ooms += ooms_before;
    result.events = usage.events();
    result.peak = usage.peak();
    for (size_t kind = 0; kind < kUsageKinds; ++kind) {
      result.peak_event[kind] = usage.peak_event(static_cast<UsageKind>(kind));
    }
    result.calls = Difference(device.calls(), calls_before);
    result.call_nanoseconds = device.call_nanoseconds() - nanoseconds_before;
    result.statistics = allocator.statistics();
    result.segments = allocator.Segments();
    if (caching.has_value()) result.rules = caching->rule_counts();
    return absl::OkStatus();
  };

  absl::Status ran = run_once(extra, nullptr);
  if (ran.ok() && options.fragmentation) {
    uint64_t at = result.peak_event[static_cast<size_t>(UsageKind::kReserved)];
    if (at == UsageObserver::kAtStart) at = 0;
    ran = run_once(nullptr, &at);
  }
  if (!ran.ok()) return ran;
  return result;
}

}  // namespace memreplay

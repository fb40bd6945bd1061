#include "sim/study/what_if.h"

#include <algorithm>
#include <utility>

#include "sim/recording/start_state.h"
#include "sim/workload/peak_holdings.h"
#include "trace/value/status_macros.h"

namespace memreplay {
namespace {

SimulatedDevice::Options DeviceOptions(const Schedule& schedule, const ReplaySettings& settings,
                                       const WhatIfOptions& what_if) {
  SimulatedDevice::Options options;
  options.capacity = settings.capacity;
  options.total = settings.total;
  options.order = settings.order;
  options.explicit_completion = CompletesExplicitly(schedule) && !what_if.complete_at_once;
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

// An observer that counts driver calls from the first request on, and notes whether a segment has
// the size that is configured for requests below kMinLargeAlloc.
class CallCount final : public Observer {
 public:
  CallCount(const SimulatedDevice& device, Bytes large_segment_size)
      : device_(device), large_segment_size_(large_segment_size) {}
  Needs needs() const override { return {.requests = false}; }
  void OnStartEvent(const Event& event) override { OnEvent(event); }
  void OnStart(const MemoryState& /*state*/, const Allocator& /*allocator*/) override {
    calls_ = device_.calls();
    nanoseconds_ = device_.call_nanoseconds();
  }
  [[gnu::always_inline]] void OnEvent(const Event& event) override {
    if (event.kind == EventKind::kSegmentAlloc && event.size == large_segment_size_) {
      has_large_segment_ = true;
    }
  }
  bool has_large_segment() const { return has_large_segment_; }
  DeviceCalls calls() const { return Difference(device_.calls(), calls_); }
  double nanoseconds() const { return device_.call_nanoseconds() - nanoseconds_; }

 private:
  const SimulatedDevice& device_;
  const Bytes large_segment_size_;
  bool has_large_segment_ = false;
  DeviceCalls calls_;
  double nanoseconds_ = 0;
};

}  // namespace

absl::StatusOr<WhatIfResult> ReplayWhatIf(const Schedule& schedule, const ReplaySettings& settings,
                                          Observer* extra, const WhatIfOptions& options) {
  WhatIfResult result;
  result.start = options.start;
  MemoryState start;
  if (settings.config.backend != Backend::kNative) {
    result.start = StartPolicy::kFresh;
    if (!schedule.is_cold())
      result.start_note = "the driver's pool cannot start with existing segments";
  } else if (options.start == StartPolicy::kRecorded && !schedule.is_cold()) {
    start = options.recorded_start != nullptr
                ? *options.recorded_start
                : RebuildStartState(schedule, settings.recorded_config, *settings.torch.profile)
                      .segments;
    SimulatedDevice trial(DeviceOptions(schedule, settings, options));
    if (const auto fits = RelocateSegments(start, trial); !fits.ok()) {
      result.start = StartPolicy::kFresh;
      result.start_note = std::string(fits.status().message());
      result.same_until = trial.same_until();
    }
  }
  ReplayPlan plan{.schedule = &schedule,
                  .profile = settings.torch.profile,
                  .config = &settings.config,
                  .fraction = settings.fraction};
  // The driver's pool has no segments to restore, so its start is allocated.
  if (settings.config.backend != Backend::kNative) plan.backend = RunBackend::kAsync;
  plan.start = {.policy = result.start, .segments = &start};

  SimulatedDevice::Options device_options = DeviceOptions(schedule, settings, options);
  device_options.costs = options.costs;
  SimulatedDevice device(device_options);
  UsageObserver usage;
  MomentsObserver moments(usage);
  CallCount calls(device, settings.config.large_segment_size);
  FragmentationOptions look;
  look.keep_segments = options.keep_segments;
  if (options.fragmentation) look.skipped_allocations = AllocationsBeforePeak(schedule);
  FragmentationObserver fragmentation(usage, moments, look);
  // Every replay has the first three; the rest are added only if requested.
  ObserversTogether always(usage, moments, calls);
  ObserverList all = {&always, options.fragmentation ? &fragmentation : nullptr, extra};
  ASSIGN_OR_RETURN(ReplayResult replay, all.size() == 1 ? Replay(plan, device, always, options.run)
                                                        : Replay(plan, device, all, options.run));

  result.run = std::move(replay.run);
  result.statistics = replay.statistics;
  result.segments = std::move(replay.segments);
  result.rules = replay.rules;
  result.events = usage.events();
  result.peak = usage.peak();
  for (size_t kind = 0; kind < kUsageKinds; ++kind) {
    result.peak_event[kind] = usage.peak_event(static_cast<UsageKind>(kind));
  }
  if (const std::optional<Bytes> until = device.same_until(); until.has_value()) {
    result.same_until = std::min(*until, result.same_until.value_or(*until));
  }
  result.moments = moments.moments();
  if (!moments.ooms().empty()) result.first_oom = moments.ooms().front().request;
  const auto fired = [&result](Rule rule) { return result.rules[static_cast<size_t>(rule)] > 0; };
  result.needs_large_segment_size = plan.backend != RunBackend::kNative ||
                                    settings.config.expandable_segments ||
                                    calls.has_large_segment() || fired(Rule::kSegmentAllocFailed) ||
                                    fired(Rule::kLimitRefused) || fired(Rule::kRejectedEarly);
  result.calls = calls.calls();
  result.call_nanoseconds = calls.nanoseconds();
  result.fragmentation = fragmentation.sample();
  if (options.fragmentation && fragmentation.gave_up()) {
    look.at_event = result.moments.at_peak.event;
    SimulatedDevice same(DeviceOptions(schedule, settings, options));
    UsageObserver usage_again;
    FragmentationObserver again(usage_again, moments, look);
    ObserverList both = {&usage_again, &again};
    if (const auto ran = Replay(plan, same, both, options.run); !ran.ok()) return ran.status();
    result.fragmentation = again.sample();
  }
  return result;
}

}  // namespace memreplay

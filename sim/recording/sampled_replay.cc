#include "sim/recording/sampled_replay.h"

#include "sim/settings/size_rules.h"
#include "sim/workload/reserved_peak.h"
#include "trace/value/memory_state.h"

namespace memreplay {

void SnapshotEcho::EchoSnapshots() {
  const EventView recorded = schedule_.recorded();
  while (position_ < recorded.size() && recorded[position_].kind == EventKind::kSnapshot) {
    Event snapshot = recorded[position_++];
    snapshot.size = active_;
    next_->OnEvent(snapshot);
  }
}

void SnapshotEcho::OnEvent(const Event& event) {
  if (IsTraced(event.kind)) {
    EchoSnapshots();
    ++position_;
  }
  next_->OnEvent(event);
  active_ = usage_.current().active();
}

void SnapshotEcho::OnStart(const MemoryState& state, const Allocator& allocator) {
  active_ = usage_.current().active();
  next_->OnStart(state, allocator);
}

void SnapshotEcho::OnEnd() {
  EchoSnapshots();  // the last ones of the recording
  next_->OnEnd();
}

SampledReplay ReplaySampled(const Schedule& schedule, const ReplaySettings& settings,
                            Observer* extra, bool keep_segments, bool stop_at_divergence) {
  SampledReplay result;
  FragmentationOptions look;
  look.keep_segments = keep_segments;
  look.skipped_allocations = AllocationsBeforePeak(schedule);
  UsageObserver usage;
  MomentsObserver moments(usage);
  FragmentationObserver fragmentation(usage, moments, look);
  SnapshotEcho echo(schedule, usage, extra);
  ObserversTogether alone(usage, moments, fragmentation);
  ObserversTogether watched(usage, moments, fragmentation, echo);
  const auto replay = [&](Observer* observer) {
    ExactReplayOptions options;
    options.observer = observer;
    options.stop_at_divergence = stop_at_divergence;
    return ReplayAsRecorded(schedule, settings.config, *settings.torch.profile, options);
  };
  result.exact = replay(extra == nullptr ? static_cast<Observer*>(&alone) : &watched);
  result.peak = usage.peak();
  result.moments = moments.moments();
  result.fragmentation = fragmentation.sample();
  const bool stopped = stop_at_divergence && result.exact.first_divergence.has_value();
  if (fragmentation.gave_up() && !stopped) {
    look.at_event = result.moments.at_peak.event;
    UsageObserver usage_again;
    FragmentationObserver again(usage_again, moments, look);
    ObserverList both = {&usage_again, &again};
    replay(&both);
    result.fragmentation = again.sample();
  }
  return result;
}

}  // namespace memreplay

#include "sim/recording/sampled_replay.h"

#include "sim/settings/size_rules.h"
#include "sim/workload/peak_holdings.h"
#include "trace/value/memory_state.h"

namespace memreplay {
namespace {

// An observer that passes events on and inserts the recording's `snapshot` events, after as many
// events as in the recording, with the simulated active bytes. No request of an allocator causes
// them. O(1) per event.
class SnapshotEcho final : public Observer {
 public:
  // `schedule`, `usage` and `next` must outlive this; `usage` must see each event before this does.
  SnapshotEcho(const Schedule& schedule, const UsageObserver& usage, Observer* next)
      : schedule_(schedule), usage_(usage), next_(next) {}

  Needs needs() const override { return {.requests = next_->needs().requests}; }
  void OnStart(const MemoryState& state, const Allocator& allocator) override {
    active_ = usage_.current().active();
    next_->OnStart(state, allocator);
  }

  void OnRequest(size_t request) override { next_->OnRequest(request); }
  void OnEvent(const Event& event) override {
    if (IsTraced(event.kind)) {
      EchoSnapshots();
      ++position_;
    }
    next_->OnEvent(event);
    active_ = usage_.current().active();
  }

  void OnEnd() override {
    EchoSnapshots();  // the last ones of the recording
    next_->OnEnd();
  }

 private:
  void EchoSnapshots() {
    const EventView recorded = schedule_.recorded();
    while (position_ < recorded.size() && recorded[position_].kind == EventKind::kSnapshot) {
      Event snapshot = recorded[position_++];
      snapshot.size = active_;
      next_->OnEvent(snapshot);
    }
  }

  const Schedule& schedule_;
  const UsageObserver& usage_;
  Observer* next_;
  size_t position_ = 0;  // in Schedule::recorded()
  Bytes active_;         // before the current event
};

}  // namespace

SampledReplay ReplaySampled(const Schedule& schedule, const ReplaySettings& settings,
                            Observer* extra, bool keep_segments, bool stop_at_divergence,
                            const ExactStart* start) {
  SampledReplay result;
  FragmentationOptions look;
  look.keep_segments = keep_segments;
  look.skipped_allocations = start != nullptr && start->allocations_before_peak.has_value()
                                 ? *start->allocations_before_peak
                                 : AllocationsBeforePeak(schedule);
  UsageObserver usage;
  MomentsObserver moments(usage);
  FragmentationObserver fragmentation(usage, moments, look);
  SnapshotEcho echo(schedule, usage, extra);
  ObserversTogether alone(usage, moments, fragmentation);
  ObserversTogether watched(usage, moments, fragmentation, echo);
  ExactReplayOptions options;
  options.observer = extra == nullptr ? static_cast<Observer*>(&alone) : &watched;
  options.stop_at_divergence = stop_at_divergence;
  options.ignores_free_requests = extra == nullptr || keep_segments;
  options.start = start;
  result.exact = ReplayAsRecorded(schedule, settings.config, *settings.torch.profile, options);
  result.exact.allocations_before_peak = look.skipped_allocations;
  result.peak = usage.peak();
  result.moments = moments.moments();
  result.fragmentation = fragmentation.sample();
  const bool stopped = stop_at_divergence && result.exact.first_divergence.has_value();
  if (fragmentation.gave_up() && !stopped) {
    look.at_event = result.moments.at_peak.event;
    UsageObserver usage_again;
    FragmentationObserver again(usage_again, moments, look);
    ObserverList both = {&usage_again, &again};
    StopWhen stop([&] { return again.sample().has_value(); });
    RepeatReplay(schedule, settings.config, *settings.torch.profile, result.exact, both, stop);
    result.fragmentation = again.sample();
  }
  if (keep_segments && result.fragmentation.has_value()) {
    for (SegmentInfo& segment : result.fragmentation->segments) {
      for (BlockInfo& block : segment.blocks) {
        if (block.state == BlockState::kInactive) block.requested_size = Bytes();
      }
    }
  }
  return result;
}

}  // namespace memreplay

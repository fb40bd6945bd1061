#include "sim/recording/sampled_replay.h"

#include "sim/settings/size_rules.h"
#include "trace/value/memory_state.h"

namespace memreplay {

void SnapshotEcho::EchoSnapshots() {
  const absl::Span<const Event> recorded = schedule_.recorded();
  while (position_ < recorded.size() && recorded[position_].kind == EventKind::kSnapshot) {
    Event snapshot = recorded[position_++];
    snapshot.size = active_;
    next_->OnEvent(snapshot);
  }
}

void SnapshotEcho::OnEvent(const Event& event) {
  const bool traced =
      !IsRequest(event.kind) || event.kind == EventKind::kAlloc || event.kind == EventKind::kFree;
  if (traced) {
    EchoSnapshots();
    ++position_;
  }
  next_->OnEvent(event);
  active_ = usage_.current().active();
}

SampledReplay ReplaySampled(const Schedule& schedule, const ReplaySettings& settings,
                            uint64_t sample_at, Observer* extra,
                            const SampleOptions& sample_options) {
  SampledReplay result;
  std::optional<UsageObserver> usage;
  std::optional<FragmentationObserver> fragmentation;
  std::optional<SnapshotEcho> echo;
  ObserverList observers;
  ObserverList watchers;

  ExactReplayOptions options;
  options.observe = [&](const MemoryState& start, const Allocator& allocator) -> Observer* {
    usage.emplace(UsageOf(start));
    FragmentationOptions fragmentation_options;
    fragmentation_options.at_event = sample_at;
    fragmentation_options.keep_segments = sample_options.keep_segments;
    fragmentation_options.block_size_for = [&settings](Bytes size) {
      return RoundSize(size, settings.config, *settings.torch.profile);
    };
    fragmentation.emplace(allocator, *usage, fragmentation_options);
    observers.Add(&*usage);
    observers.Add(&*fragmentation);
    Observer* const watcher =
        sample_options.observe ? sample_options.observe(usage->current()) : nullptr;
    for (Observer* const observer : {extra, watcher}) {
      if (observer != nullptr) watchers.Add(observer);
    }
    if (extra != nullptr || watcher != nullptr) {
      echo.emplace(schedule, *usage, &watchers);
      observers.Add(&*echo);
    }
    return &observers;
  };
  result.exact = ReplayAsRecorded(schedule, settings.config, *settings.torch.profile, options);
  // A moment that never came leaves no sample: the allocator is gone.
  if (echo.has_value()) echo->Finish();
  result.peak = usage->peak();
  result.fragmentation = fragmentation->sample();
  return result;
}

}  // namespace memreplay

#include "sim/oom/oom_scene.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "sim/recording/exact_replay.h"
#include "sim/run/run.h"
#include "sim/settings/size_rules.h"
#include "sim/study/what_if.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr size_t kNone = ~size_t{0};

// An observer that watches a run for the first oom, or for what happens to one request.
class Witness final : public Observer, public Intervention {
 public:
  // `target` is the request to watch; kNone is the first that runs out, found without the state
  // before it.
  explicit Witness(size_t target) : target_(target) {}

  Next BeforeRequest(size_t request, Allocator& allocator, Observer& /*observer*/) override {
    allocator_ = &allocator;
    current_ = request;
    if (request == target_) before_ = allocator.Segments();
    return Next::kApply;
  }
  void OnEvent(const Event& event) override {
    if (event.kind != EventKind::kOom) return;
    ++ooms_;
    const bool first = target_ == kNone && request_ == kNone;
    if (allocator_ == nullptr || (!first && current_ != target_)) return;
    request_ = current_;
    oom_ = event;
    at_ = allocator_->Segments();
  }

  size_t target_;
  const Allocator* allocator_ = nullptr;
  size_t current_ = kNone;
  size_t request_ = kNone;
  uint64_t ooms_ = 0;
  Event oom_;
  MemoryState before_;
  MemoryState at_;
};

// Returns the share of the device that PyTorch may use when `request` comes.
double FractionAt(const Schedule& schedule, const ReplaySettings& settings, size_t request) {
  double fraction = settings.fraction.value_or(settings.config.per_process_memory_fraction);
  for (size_t i = 0; i < request; ++i) {
    const Event& event = schedule.requests()[i];
    if (event.kind != EventKind::kFraction) continue;
    double given = 0;
    const std::string_view text = schedule.trace().strings[event.text_or_stack];
    if (absl::SimpleAtod(ToAbsl(text), &given)) fraction = given;
  }
  return fraction;
}

// Subtracts what the share of the GPU that PyTorch may use leaves no room for.
void LimitGrantable(const Schedule& schedule, const ReplaySettings& settings,
                    std::optional<Bytes> total, OomScene* scene) {
  scene->total = total;
  const double fraction = FractionAt(schedule, settings, scene->request);
  if (!total.has_value() || fraction >= 1) return;
  const Bytes limit(static_cast<uint64_t>(fraction * static_cast<double>(total->value())));
  const Bytes left = limit > scene->reserved ? limit - scene->reserved : Bytes();
  scene->grantable = std::min(scene->grantable, left);
}

OomScene SceneOf(const Schedule& schedule, Witness& witness) {
  OomScene scene;
  scene.request = witness.request_;
  scene.event = EventOfRequest(schedule, scene.request);
  scene.oom = witness.oom_;
  scene.requested = schedule.requests()[scene.request].size;
  scene.before = std::move(witness.before_);
  scene.at = std::move(witness.at_);
  for (const SegmentInfo& segment : scene.at) scene.reserved += segment.total_size;
  scene.device_free = scene.oom.device_free();
  scene.grantable = scene.device_free;
  return scene;
}

// Returns the last oom of the recording: its event and its request.
std::optional<std::pair<uint64_t, size_t>> LastRecordedOom(const Schedule& schedule) {
  const EventView recorded = schedule.recorded();
  for (size_t i = recorded.size(); i-- > 0;) {
    if (recorded[i].kind != EventKind::kOom) continue;
    // Finds the last request that begins at or before it and requests memory.
    const absl::Span<const uint32_t> begins = schedule.recorded_begin();
    auto it = std::upper_bound(begins.begin(), begins.end(), i);
    while (it != begins.begin()) {
      --it;
      const auto request = static_cast<size_t>(it - begins.begin());
      if (schedule.requests()[request].kind == EventKind::kAlloc) return std::pair(i, request);
    }
    return std::nullopt;
  }
  return std::nullopt;
}

std::optional<OomScene> FindRecorded(const Schedule& schedule, const ReplaySettings& settings) {
  const auto last = LastRecordedOom(schedule);
  if (!last.has_value()) return std::nullopt;
  Witness witness(last->second);
  ExactReplayOptions options;
  options.intervention = &witness;
  options.observer = &witness;
  const ExactReplayResult replay =
      ReplayAsRecorded(schedule, settings.config, *settings.torch.profile, options);
  if (witness.request_ == kNone) {
    // The simulation has diverged from the recording and does not run out here. Its state when the
    // request arrives is the nearest available.
    witness.request_ = last->second;
    witness.at_ = witness.before_;
  }
  witness.oom_ = schedule.recorded()[last->first];
  OomScene scene = SceneOf(schedule, witness);
  scene.event = last->first;
  scene.recorded = true;
  scene.ooms = static_cast<uint64_t>(
      std::count_if(schedule.recorded().begin(), schedule.recorded().end(),
                    [](const Event& event) { return event.kind == EventKind::kOom; }));
  LimitGrantable(schedule, settings, replay.card.total, &scene);
  scene.exact = replay.exact_until_event > scene.event;
  if (!scene.exact) scene.inexact_reason = replay.exactness_reason;
  return scene;
}

}  // namespace

absl::StatusOr<std::optional<OomScene>> FindOom(const Schedule& schedule,
                                                const ReplaySettings& settings) {
  if (settings.as_recorded) return FindRecorded(schedule, settings);
  const auto run = [&](Witness* witness) {
    WhatIfOptions options;
    options.run.intervention = witness;
    return ReplayWhatIf(schedule, settings, witness, options).status();
  };
  Witness first(kNone);
  RETURN_IF_ERROR(run(&first));
  if (first.request_ == kNone) return std::nullopt;
  Witness second(first.request_);
  RETURN_IF_ERROR(run(&second));

  OomScene scene = SceneOf(schedule, second);
  scene.ooms = first.ooms_;
  LimitGrantable(schedule, settings,
                 settings.total.has_value() ? settings.total : settings.capacity, &scene);
  return scene;
}

}  // namespace memreplay

#include "sim/oom/oom_counterfactuals.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "sim/settings/size_rules.h"
#include "sim/study/study.h"
#include "sim/study/what_if.h"
#include "sim/whatif/smallest_capacity.h"
#include "sim/whatif/stream_cost.h"
#include "trace/value/status_macros.h"

namespace memreplay {
namespace {

constexpr Bytes kGrain = MiB(2);
constexpr int kMaxDoublings = 8;
constexpr uint64_t kShare = 4;  // of the runs of an answer that one counterfactual may take

class ChangedRun final : public Intervention {
 public:
  ChangedRun(const Schedule& schedule, const OomScene& scene, const Counterfactual& change)
      : schedule_(schedule),
        scene_(scene),
        change_(change),
        rewriting_(schedule, change.kind == ChangeKind::kOneStream ? OnOneStream()
                             : change.kind == ChangeKind::kOnePool ? InOnePool()
                                                                   : nullptr) {}

  Next BeforeRequest(size_t request, Allocator& allocator, Observer& observer) override {
    if (request != scene_.request) {
      // These ran out earlier in the recording, and the script survived them.
      if (scene_.recorded && refused_.contains(request)) return Next::kSkip;
      if (scene_.recorded && request > scene_.request) return Next::kStop;
      return rewriting_.BeforeRequest(request, allocator, observer);
    }
    const Event given = schedule_.requests()[request];
    const Event asked = rewriting_.Rewritten(given).value_or(given);
    if (change_.kind == ChangeKind::kEmptyCache) {
      allocator.Apply({.kind = EventKind::kEmptyCache}, observer).IgnoreError();
    } else if (change_.kind == ChangeKind::kFreeStack) {
      FreeStack(allocator, observer);
    }
    served = Try(asked, allocator, observer);
    if (change_.kind == ChangeKind::kRetry && !served) {
      Event done = {.kind = EventKind::kStreamDone};
      for (done.stream = 0; done.stream < schedule_.stream_count(); ++done.stream) {
        allocator.Apply(done, observer).IgnoreError();
      }
      served = Try(asked, allocator, observer);
      ++forgiven;
    }
    return Next::kSkip;
  }

  void FindRefused() {
    if (!scene_.recorded) return;
    const absl::Span<const uint32_t> begins = schedule_.recorded_begin();
    for (size_t request = 0; request < scene_.request; ++request) {
      const size_t end = begins[request + 1];
      for (size_t i = begins[request]; i < end; ++i) {
        if (schedule_.recorded()[i].kind == EventKind::kOom) refused_.insert(request);
      }
    }
  }

  bool served = false;
  uint64_t forgiven = 0;  // ooms that are part of the question

 private:
  static bool Try(const Event& asked, Allocator& allocator, Observer& observer) {
    const int64_t ooms = allocator.ooms();
    const absl::Status applied = allocator.Apply(asked, observer);
    return applied.ok() && allocator.ooms() == ooms;
  }

  void FreeStack(Allocator& allocator, Observer& observer) {
    std::vector<AllocationId> ids;
    for (const SegmentInfo& segment : allocator.Segments()) {
      for (const BlockInfo& block : segment.blocks) {
        if (block.state == BlockState::kAllocated && block.stack == change_.stack &&
            block.id != kNoAllocation) {
          ids.push_back(block.id);
        }
      }
    }
    Event free = {.kind = EventKind::kFree};
    for (const AllocationId id : ids) {
      free.id = id;
      allocator.Apply(free, observer).IgnoreError();
    }
  }

  const Schedule& schedule_;
  const OomScene& scene_;
  const Counterfactual& change_;
  Rewriting rewriting_;
  absl::flat_hash_set<size_t> refused_;
};

size_t PrivatePools(const MemoryState& state) {
  absl::flat_hash_set<std::pair<uint64_t, uint64_t>> pools;
  for (const SegmentInfo& segment : state) {
    if (!segment.pool_id.is_default()) pools.emplace(segment.pool_id.first, segment.pool_id.second);
  }
  return pools.size();
}

// Returns the settings of the counterfactual runs, with a device as large as the original.
ReplaySettings OnSimulatedDevice(const ReplaySettings& settings, const OomScene& scene) {
  ReplaySettings simulated = settings;
  simulated.as_recorded = false;
  if (scene.recorded) {
    simulated.capacity = scene.reserved + scene.device_free;
    simulated.total = scene.total;
  }
  return simulated;
}

absl::Status Answer(const Schedule& schedule, const ReplaySettings& settings, const OomScene& scene,
                    Counterfactual* change, std::optional<Bytes>* same_until = nullptr) {
  ChangedRun run(schedule, scene, *change);
  run.FindRefused();
  WhatIfOptions options;
  options.run.intervention = &run;
  ASSIGN_OR_RETURN(const WhatIfResult result, ReplayWhatIf(schedule, settings, nullptr, options));
  if (same_until != nullptr) *same_until = result.same_until;
  change->served = run.served;
  change->survives = run.served && result.run.ooms <= run.forgiven;
  change->peak_reserved = result.peak.reserved();
  return absl::OkStatus();
}

// Finds the smallest additional memory with which every larger device survives: bisects, then walks
// up from break to break.
absl::StatusOr<Counterfactual> LeastMoreMemory(const Schedule& schedule,
                                               const ReplaySettings& settings,
                                               const OomScene& scene, ProgressSink* progress) {
  std::map<Bytes, Counterfactual> tried;  // by how much more
  absl::Status failed;
  const auto with = [&](Bytes more) {
    Counterfactual change;
    change.kind = ChangeKind::kMemory;
    change.amount = more;
    ReplaySettings larger = settings;
    larger.capacity = *settings.capacity + more;
    if (larger.total.has_value()) *larger.total += more;
    CapacityOutcome outcome;
    failed.Update(Answer(schedule, larger, scene, &change, &outcome.same_until));
    if (progress != nullptr) progress->AddDone();
    if (!failed.ok()) outcome.same_until.reset();
    outcome.survives = change.survives;
    tried[more] = change;
    return outcome;
  };
  const uint64_t requests = schedule.requests().size();
  const uint64_t max_sizes = MaxSizes(requests);
  const auto sizes_left = [&] { return max_sizes - std::min<uint64_t>(max_sizes, tried.size()); };
  Bytes low;  // does not suffice
  const Bytes asked = std::min(scene.oom.size, kMaxDeviceMemory);
  Bytes high = RoundUp(AllocationSize(asked, settings.config), kGrain);
  for (int i = 0; i < kMaxDoublings && !with(high).survives && failed.ok(); ++i) {
    if (high >= kMaxDeviceMemory) break;
    low = high;
    high = high * 2;
  }
  while (failed.ok() && tried[high].survives && high > low + kGrain && sizes_left() > 0) {
    const Bytes middle = RoundDown(low + Bytes((high - low).value() / 2), kGrain);
    (with(middle).survives ? high : low) = middle;
  }
  if (!failed.ok()) return failed;
  if (!tried[high].survives) return tried.rbegin()->second;
  const bool is_bisected = high <= low + kGrain;
  // Its first size was tried.
  const uint64_t runs = std::min(RunsFor(requests) / kShare, sizes_left() + 1);
  const CapacityWalk walk = WalkCapacities(high, std::nullopt, runs, with);
  if (!failed.ok()) return failed;
  Counterfactual best = tried[walk.safe.value_or(high)];
  for (auto it = tried.rbegin(); it != tried.rend(); ++it) {
    if (it->second.survives) best.by_luck = it->first;
  }
  best.is_cut = !is_bisected || (walk.stopped_at.has_value() && runs < RunsFor(requests) / kShare);
  best.is_safe = walk.safe.has_value() && !walk.stopped_at.has_value();
  return best;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> OtherSettings(const ReplaySettings& settings,
                                                               Bytes request, int max) {
  const AllocatorConfig& now = settings.config;
  const TorchProfile& profile = *settings.torch.profile;
  if (now.backend != Backend::kNative) return {{"default settings", ""}};
  std::vector<std::string> changes;
  if (profile.conf_keys.Has(ConfKey::kExpandableSegments) && !now.expandable_segments) {
    changes.emplace_back("expandable_segments:True");
  }
  // Blocks of this size and larger stay whole, which helps if it is below the size of the large
  // requests. It is harmful together with expandable segments.
  if (profile.conf_keys.Has(ConfKey::kMaxSplitSizeMb) && !now.expandable_segments) {
    std::vector<uint64_t> sizes = {32, 64, 128, 256, 512};
    const uint64_t asked = request / MiB(1);
    if (asked > kLargeBuffer / MiB(1)) sizes.insert(sizes.begin(), asked);
    for (const uint64_t mib : sizes) {
      if (MiB(mib) >= now.max_split_size && now.max_split_size != kUnlimited) continue;
      const std::string change = absl::StrCat("max_split_size_mb:", mib);
      if (std::find(changes.begin(), changes.end(), change) == changes.end()) {
        changes.push_back(change);
      }
    }
  }
  const bool rounds =
      std::any_of(now.roundup_power2_divisions.begin(), now.roundup_power2_divisions.end(),
                  [](uint64_t divisions) { return divisions != 0; });
  if (profile.conf_keys.Has(ConfKey::kRoundupPower2Divisions) && !rounds) {
    changes.emplace_back("roundup_power2_divisions:8");
  }
  std::vector<std::pair<std::string, std::string>> others;
  for (const std::string& change : changes) {
    if (static_cast<int>(others.size()) == max) break;
    others.emplace_back(change, now.conf.empty() ? change : absl::StrCat(now.conf, ",", change));
  }
  if (now.conf.empty()) return others;
  // One of several settings may do the harm. (Lists in brackets stay whole.)
  std::vector<std::string> items(1);
  int depth = 0;
  for (const char c : now.conf) {
    depth += (c == '[') - (c == ']');
    if (c == ',' && depth == 0) {
      items.emplace_back();
    } else {
      items.back() += c;
    }
  }
  for (size_t left_out = 0; items.size() > 1 && left_out < items.size(); ++left_out) {
    std::string conf;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i != left_out) absl::StrAppend(&conf, conf.empty() ? "" : ",", items[i]);
    }
    others.emplace_back(absl::StrCat("without ", items[left_out]), conf);
  }
  others.emplace_back("default settings", "");
  return others;
}

absl::StatusOr<std::vector<Counterfactual>> TryCounterfactuals(
    const Schedule& schedule, const ReplaySettings& settings, const OomScene& scene,
    const CounterfactualOptions& options) {
  const ReplaySettings simulated = OnSimulatedDevice(settings, scene);
  std::vector<Counterfactual> answers;
  const auto in_other_order = [](ReplaySettings under) {
    under.order = OtherOrder(under.order);
    return under;
  };
  const auto note_other = [](const Counterfactual& other, Counterfactual* change) {
    change->other_order = {other.amount, other.served, other.survives, other.peak_reserved};
  };
  const auto add = [&](Counterfactual change, const ReplaySettings& under) {
    Counterfactual other = change;
    absl::Status answered = Answer(schedule, under, scene, &change);
    answered.Update(Answer(schedule, in_other_order(under), scene, &other));
    if (options.progress != nullptr) options.progress->AddDone();
    note_other(other, &change);
    if (answered.ok()) answers.push_back(std::move(change));
    return answered;
  };
  const auto of = [](ChangeKind kind) {
    Counterfactual change;
    change.kind = kind;
    return change;
  };
  for (const ChangeKind kind :
       {ChangeKind::kNothing, ChangeKind::kRetry, ChangeKind::kEmptyCache}) {
    RETURN_IF_ERROR(add(of(kind), simulated));
  }
  for (auto& [change, conf] : OtherSettings(settings, scene.oom.size, options.max_settings)) {
    ReplaySettings under = simulated;
    under.config = AllocatorConfig();
    // Settings that the release rejects are no advice.
    if (!ParseAllocatorConf(conf, *settings.torch.profile, &under.config).ok()) continue;
    Counterfactual setting = of(ChangeKind::kSetting);
    setting.conf = std::move(conf);
    setting.change = std::move(change);
    RETURN_IF_ERROR(add(setting, under));
  }
  for (const uint32_t stack : options.stacks) {
    Counterfactual change = of(ChangeKind::kFreeStack);
    change.stack = stack;
    for (const SegmentInfo& segment : scene.before) {
      for (const BlockInfo& block : segment.blocks) {
        if (block.state == BlockState::kAllocated && block.stack == stack) {
          change.amount += block.size;
        }
      }
    }
    RETURN_IF_ERROR(add(change, simulated));
  }
  if (schedule.is_cold() && AllocatesOnSeveralStreams(schedule)) {
    RETURN_IF_ERROR(add(of(ChangeKind::kOneStream), simulated));
  }
  if (schedule.is_cold() && PrivatePools(scene.at) > 1) {
    RETURN_IF_ERROR(add(of(ChangeKind::kOnePool), simulated));
  }
  if (simulated.capacity.has_value()) {
    ASSIGN_OR_RETURN(Counterfactual memory,
                     LeastMoreMemory(schedule, simulated, scene, options.progress));
    ASSIGN_OR_RETURN(const Counterfactual other,
                     LeastMoreMemory(schedule, in_other_order(simulated), scene, options.progress));
    note_other(other, &memory);
    memory.is_cut = memory.is_cut || other.is_cut;
    answers.push_back(std::move(memory));
  }
  return answers;
}

}  // namespace memreplay

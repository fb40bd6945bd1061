#include "sim/oom/oom_analysis.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "sim/settings/size_rules.h"
#include "sim/workload/lifetimes.h"
#include "trace/value/status_macros.h"

namespace memreplay {
namespace {

constexpr size_t kMaxLargest = 5;

std::vector<StackHolding> Holdings(const MemoryState& state) {
  std::vector<StackHolding> holdings;
  std::vector<std::vector<const BlockInfo*>> blocks;
  absl::flat_hash_map<uint32_t, size_t> rows;
  for (const SegmentInfo& segment : state) {
    for (const BlockInfo& block : segment.blocks) {
      if (block.state != BlockState::kAllocated) continue;
      const auto [it, is_new] = rows.try_emplace(block.stack, holdings.size());
      if (is_new) {
        holdings.emplace_back().stack = block.stack;
        blocks.emplace_back();
      }
      StackHolding& holding = holdings[it->second];
      holding.bytes += block.size;
      holding.requested += block.requested_size;
      holding.packed += RoundUp(block.requested_size, kMinBlockSize);
      ++holding.blocks;
      blocks[it->second].push_back(&block);
    }
  }
  for (size_t row = 0; row < holdings.size(); ++row) {
    std::stable_sort(blocks[row].begin(), blocks[row].end(),
                     [](const BlockInfo* a, const BlockInfo* b) { return a->size > b->size; });
    if (blocks[row].size() > kMaxLargest) blocks[row].resize(kMaxLargest);
    for (const BlockInfo* block : blocks[row]) holdings[row].largest.push_back(block->id);
  }
  std::sort(holdings.begin(), holdings.end(), [](const StackHolding& a, const StackHolding& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.stack < b.stack;
  });
  return holdings;
}

void FindSteps(const Schedule& schedule, OomAnalysis* analysis) {
  const DeviceTrace& device = schedule.device_trace();
  analysis->steps = FindSteps(schedule.trace(), device, analysis->scene.event);
  if (analysis->steps.count() == 0) return;
  // What the rest of the file frees is no leak, whether the exception of a recorded OOM frees it
  // or, if the file continues, a later step.
  analysis->growth = GrowthPerStep(schedule.trace(), device, analysis->steps, device.events.size());
  if (const SiteGrowth* leak = FindLeak(analysis->steps, analysis->growth)) analysis->leak = *leak;
}

// Returns the maximum of the whole file if it is more than the device (or its limit) can hold.
std::optional<LiveAtOnce> TooLarge(const Schedule& schedule, const OomScene& scene) {
  if (scene.recorded) return std::nullopt;  // the file lacks what would have come after
  const PeakLive live = PeakLiveOf(LifetimesOf(schedule));
  if (live.requested <= scene.reserved + scene.grantable) return std::nullopt;
  const size_t request = live.moment == 0 ? 0 : live.moment - 1;
  return LiveAtOnce{live.requested, EventOfRequest(schedule, request)};
}

OomVerdict Judge(const OomAnalysis& analysis) {
  bool setting_serves = false;
  for (const Counterfactual& answer : analysis.counterfactuals) {
    if (!analysis.reproduced) break;
    if (answer.kind == ChangeKind::kRetry && answer.served) return OomVerdict::kPendingFree;
    setting_serves |= answer.kind == ChangeKind::kSetting && answer.survives;
  }
  const Bytes wanted = analysis.scene.oom.size;
  const Bytes left(static_cast<uint64_t>(
      analysis.leak.has_value() ? std::max<int64_t>(analysis.leak->bytes, 0) : 0));
  Bytes live;
  for (const StackHolding& holding : analysis.holdings) live += holding.bytes;
  // Where a recording ends, a setting that serves the request postpones what grows: the next steps
  // leave as much again.
  if (analysis.scene.recorded && left > Bytes() && left >= live - left) return OomVerdict::kLeak;
  // Else what a setting cures is no leak, however many blocks the steps leave.
  if (setting_serves) return OomVerdict::kFragmentation;
  if (left > Bytes() && analysis.obtainable + left >= wanted) return OomVerdict::kLeak;
  if (analysis.too_large.has_value()) return OomVerdict::kExceedsDevice;
  return analysis.obtainable >= wanted ? OomVerdict::kFragmentation : OomVerdict::kTrueShortage;
}

}  // namespace

absl::StatusOr<std::optional<OomAnalysis>> AnalyseOom(const Schedule& schedule,
                                                      const ReplaySettings& settings,
                                                      int top_stacks, ProgressSink* progress) {
  ASSIGN_OR_RETURN(std::optional<OomScene> scene, FindOom(schedule, settings));
  if (!scene.has_value()) return std::nullopt;
  OomAnalysis analysis;
  analysis.scene = *std::move(scene);
  analysis.holdings = Holdings(analysis.scene.at);
  Bytes needed;
  for (const StackHolding& holding : analysis.holdings) needed += holding.packed;
  analysis.obtainable = analysis.scene.grantable + (analysis.scene.reserved - needed);

  CounterfactualOptions options;
  options.progress = progress;
  for (const StackHolding& holding : analysis.holdings) {
    if (static_cast<int>(options.stacks.size()) == top_stacks) break;
    if (holding.stack != kNoStack) options.stacks.push_back(holding.stack);
  }
  ASSIGN_OR_RETURN(analysis.counterfactuals,
                   TryCounterfactuals(schedule, settings, analysis.scene, options));
  analysis.reproduced = !analysis.counterfactuals.front().served;
  FindSteps(schedule, &analysis);
  analysis.too_large = TooLarge(schedule, analysis.scene);
  analysis.verdict = Judge(analysis);
  return analysis;
}

std::vector<int64_t> BirthEvents(const Schedule& schedule) {
  std::vector<int64_t> births(schedule.allocation_count(), -1);
  const RequestView requests = schedule.requests();
  for (size_t i = 0; i < requests.size(); ++i) {
    const Event request = requests[i];
    if (request.kind != EventKind::kAlloc || request.id >= births.size()) continue;
    births[request.id] = static_cast<int64_t>(EventOfRequest(schedule, i));
  }
  return births;
}

}  // namespace memreplay

// Explains why memory ran out: the scene, what would have helped, and the verdict.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "sim/oom/oom_counterfactuals.h"
#include "sim/oom/oom_scene.h"
#include "sim/recording/replay_settings.h"
#include "sim/run/progress.h"
#include "sim/workload/step_growth.h"
#include "sim/workload/steps.h"
#include "trace/schedule/schedule.h"

namespace memreplay {

// The verdict on an out-of-memory event.
enum class OomVerdict : uint8_t {
  kExceedsDevice,  // the script needs more at once than the device has
  kTrueShortage,   // no packing of what is live leaves room for the request
  kFragmentation,  // there is room, but in pieces
  kLeak,           // there is none, because every step leaves something behind
  kPendingFree,    // the request succeeds when made again after a synchronisation
};

// What one stack holds at the scene, in blocks that tensors hold.
struct StackHolding {
  uint32_t stack = 0;
  Bytes bytes;  // of blocks
  Bytes requested;
  Bytes packed;  // the minimum that blocks for these requests can take
  uint64_t blocks = 0;
  std::vector<AllocationId> largest;  // ids of the largest few
};

// The maximum that is live at once, as requested.
struct LiveAtOnce {
  Bytes requested;
  uint64_t event = 0;  // in the file's events
};

// Why memory ran out.
struct OomAnalysis {
  OomScene scene;
  Bytes obtainable;                    // scene.grantable + reserved - allocated
  std::vector<StackHolding> holdings;  // most bytes first
  std::vector<Counterfactual> counterfactuals;
  // Whether the control ran out at the same request as the scene.
  bool reproduced = false;
  Steps steps;  // before the scene
  StepGrowth growth;
  std::optional<SiteGrowth> leak;  // the site behind a leak
  // Present if a simulated device is too small for what the whole schedule has live at once.
  std::optional<LiveAtOnce> too_large;
  OomVerdict verdict = OomVerdict::kTrueShortage;
};

inline constexpr int kFreedStacks = 3;

// Analyses why memory runs out; returns nullopt if it does not. The memory of the `top_stacks`
// stacks that hold most is freed one stack at a time. About 60 runs of the schedule.
absl::StatusOr<std::optional<OomAnalysis>> AnalyseOom(const Schedule& schedule,
                                                      const ReplaySettings& settings,
                                                      int top_stacks = kFreedStacks,
                                                      ProgressSink* progress = nullptr);

// Returns positions in the file's events of the request that made each allocation, by AllocationId;
// -1 for those of the start. O(requests).
std::vector<int64_t> BirthEvents(const Schedule& schedule);

}  // namespace memreplay

// Finds what would have helped when memory ran out. Each answer is a run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sim/oom/oom_scene.h"
#include "sim/recording/replay_settings.h"
#include "sim/run/progress.h"
#include "trace/schedule/schedule.h"
#include "trace/value/units.h"

namespace memreplay {

enum class ChangeKind : uint8_t {
  kNothing,     // the control: what happened, on the simulated device
  kSetting,     // another PYTORCH_CUDA_ALLOC_CONF from the first request on
  kEmptyCache,  // torch.cuda.empty_cache() just before the request
  kFreeStack,   // what one stack holds is freed just before the request
  kOneStream,   // everything on one stream, from the first request on
  kOnePool,     // all private pools are one, from the first request on
  kMemory,      // a larger device
  kRetry,       // all streams are synchronised, and the request is made again
};

// A change, and the result of the run with it.
struct Counterfactual {
  ChangeKind kind = ChangeKind::kNothing;
  std::string conf;     // the whole string of kSetting
  std::string change;   // what differs from the current string, for kSetting
  uint32_t stack = 0;   // of kFreeStack
  Bytes amount;         // bytes that kFreeStack frees or kMemory adds
  bool served = false;  // the request got memory
  // Whether the request got memory and nothing ran out: before it and, if a simulated device
  // refused it, to the end. (How a recording continues after its own oom is not what it would have
  // done.)
  bool survives = false;
  Bytes peak_reserved;  // over the run
  // The smallest addition of kMemory found that survives; a larger device need not.
  Bytes by_luck;
  bool is_safe = false;  // every device larger than by `amount` survives too (kMemory)
  bool is_cut = false;   // more sizes than MaxSizes() would have had to be tried (kMemory)
  // The result with addresses in OtherOrder().
  struct OtherOrderAnswer {
    Bytes amount;
    bool served = false;
    bool survives = false;
    Bytes peak_reserved;
  } other_order;
};

// Which changes to try.
struct CounterfactualOptions {
  std::vector<uint32_t> stacks;  // whose memory to free, one at a time
  int max_settings = 8;
  ProgressSink* progress = nullptr;  // informed of each run
};

// Tries the control first, then settings that the release knows and that are not on, and the other
// changes. The device has what PyTorch held and the driver could still grant (for a recording), or
// the requested capacity. About 60 runs.
absl::StatusOr<std::vector<Counterfactual>> TryCounterfactuals(
    const Schedule& schedule, const ReplaySettings& settings, const OomScene& scene,
    const CounterfactualOptions& options);

// Returns the settings worth trying instead of `settings`, as pairs of the change and the whole
// string.
std::vector<std::pair<std::string, std::string>> OtherSettings(const ReplaySettings& settings,
                                                               Bytes request, int max);

}  // namespace memreplay

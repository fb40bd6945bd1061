// What would have helped when memory ran out: each answer is a run.
#ifndef MEMREPLAY_SIM_OOM_OOM_COUNTERFACTUALS_H_
#define MEMREPLAY_SIM_OOM_OOM_COUNTERFACTUALS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sim/oom/oom_scene.h"
#include "sim/recording/replay_settings.h"
#include "sim/run/progress.h"
#include "sim/run/run.h"
#include "trace/schedule/schedule.h"
#include "trace/value/units.h"

namespace memreplay {

enum class ChangeKind : uint8_t {
  kNothing,     // the control: what happened, on the simulated device
  kSetting,     // another PYTORCH_CUDA_ALLOC_CONF from the first request on
  kEmptyCache,  // torch.cuda.empty_cache() just before the request
  kFreeStack,   // what one stack holds is freed just before the request
  kOneStream,   // everything on one stream, from the first request on
  kMemory,      // a larger device
  kRetry,       // all streams are waited for, and the request is made again
};

// A change, and what the run comes to with it.
struct Counterfactual {
  ChangeKind kind = ChangeKind::kNothing;
  std::string conf;     // kSetting: the whole string
  std::string change;   // kSetting: what differs from the current string
  uint32_t stack = 0;   // kFreeStack
  Bytes amount;         // kFreeStack: bytes freed; kMemory: bytes more
  bool served = false;  // the request got memory
  // The request got memory and nothing ran out: before it, and, where a
  // simulated device refused it, to the end. (What a recording goes on with
  // after its own oom is not what it would have done.)
  bool survives = false;
  Bytes peak_reserved;  // over the run
  // kMemory: the least found that survives; a device larger than that need not.
  Bytes by_luck;
  bool is_safe = false;  // kMemory: every device larger than by `amount` survives too
  // The same with addresses in OtherOrder().
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
  ProgressSink* progress = nullptr;  // told of each run
};

// The control first, then settings that the release knows and that are not on,
// and the other changes. The device has what PyTorch held and the driver could
// still give (a recording), or the requested capacity. About 60 runs.
absl::StatusOr<std::vector<Counterfactual>> TryCounterfactuals(
    const Schedule& schedule, const ReplaySettings& settings, const OomScene& scene,
    const CounterfactualOptions& options);

// The settings worth trying instead of `settings`: (change, whole string).
std::vector<std::pair<std::string, std::string>> OtherSettings(const ReplaySettings& settings,
                                                               Bytes request, int max);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_OOM_OOM_COUNTERFACTUALS_H_

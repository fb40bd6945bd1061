// Changes of a script that may lower its peak, each as an edit of the schedule that was recorded.
#ifndef MEMREPLAY_SIM_REMEDY_REMEDIES_H_
#define MEMREPLAY_SIM_REMEDY_REMEDIES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "sim/remedy/passes.h"
#include "sim/remedy/schedule_edit.h"
#include "trace/value/units.h"

namespace memreplay {

enum class RemedyKind : uint8_t {
  kSettings,    // another PYTORCH_CUDA_ALLOC_CONF; no edit
  kEarlyZero,   // gradients are freed after the optimizer's step, not during the next pass
  kLeak,        // what a stack leaves behind is freed at the end of its step
  kNoGrad,      // passes that no backward pass follows save nothing
  kEmptyCache,  // empty_cache() between training and evaluation
  kForeach,     // the optimizer updates one parameter after the other
  kFusedLoss,   // the loss makes nothing of the size of the logits, and its gradient takes theirs
  kCheckpoint,  // what a module saves is freed when it returns and computed again in backward
  kHost,        // activations are copied to the host, and back in backward
};

// A change of the script, as an edit of its recording.
struct Remedy {
  RemedyKind kind = RemedyKind::kSettings;
  std::string conf;             // kSettings: the whole string
  size_t module = 0;            // kCheckpoint, kHost: in PassFacts::modules
  uint32_t every = 1;           // kCheckpoint: each, or every second call of a pass
  uint32_t stack = 0;           // kLeak; kFusedLoss: of the logits
  Bytes size;                   // kLeak: of a site without a stack; kFusedLoss: of the logits
  std::vector<uint64_t> steps;  // kLeak: Steps::begins
  // What it costs in each training step: bytes that are allocated once more (kCheckpoint) or
  // copied each way (kHost), and the share of all that forward passes allocate.
  Bytes work;
  double share = 0;
};

// Those for which the schedule shows what they would change, the cheapest first. `settings`
// excepted: the caller knows which there are. O(requests).
std::vector<Remedy> FindRemedies(const PassFacts& facts);

// Adds its changes to `edit`. An allocation that another remedy has claimed stays as that one has
// it. O(requests).
void ApplyRemedy(const PassFacts& facts, const Remedy& remedy, ScheduleEdit* edit);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_REMEDY_REMEDIES_H_

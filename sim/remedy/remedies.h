// Changes of a script that may lower its peak, each as an edit of the schedule that was recorded.
#pragma once

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
  kNoGrad,      // passes without a backward pass save nothing
  kEmptyCache,  // empty_cache() between training and evaluation
  kForeach,     // the optimizer updates one parameter after the other
  kFusedLoss,   // the loss makes nothing as large as the logits, and its gradient replaces them
  kCheckpoint,  // what a module saves is freed after its last use and recomputed in backward
  kHost,        // activations are copied to the host, and back in backward
};

// A change of the script, as an edit of its recording.
struct Remedy {
  RemedyKind kind = RemedyKind::kSettings;
  std::string conf;             // the whole string of kSettings
  size_t module = 0;            // of kCheckpoint and kHost, in PassFacts::modules
  uint32_t every = 1;           // kCheckpoint: each, or every second call of a pass
  uint32_t stack = 0;           // of kLeak, or of the logits of kFusedLoss
  Bytes size;                   // of kLeak's site without a stack, or of the logits of kFusedLoss
  std::vector<uint64_t> steps;  // Steps::begins of kLeak
  // The cost in each training step: bytes that are allocated once more (kCheckpoint) or copied each
  // way (kHost), and their share of all that forward passes allocate.
  Bytes work;
  double share = 0;
};

// Returns the remedies that would change something according to the schedule, the cheapest first.
// Settings are not included, because the caller knows which there are. O(requests).
std::vector<Remedy> FindRemedies(const PassFacts& facts);

// Adds the remedy's changes to `edit`. It does not change an allocation that another remedy has
// claimed. O(requests).
void ApplyRemedy(const PassFacts& facts, const Remedy& remedy, ScheduleEdit* edit);

}  // namespace memreplay

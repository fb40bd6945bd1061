// What the frames of a stack say about an allocation made under them.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/value/trace.h"

namespace memreplay {

// What was running. The innermost of these decides.
enum class StackPhase : uint8_t {
  kNone,       // the script's own code, outside of all of these
  kEmpty,      // no frames: a thread without Python, such as autograd's
  kLoad,       // a module is made, moved or filled
  kForward,    // forward() of a module
  kInference,  // the same, called under torch.no_grad() or torch.inference_mode() as decorators
  kBackward,   // autograd, including recomputation
  kOptimizer,  // a step, clipping, scaling of gradients
};

// What the frames of a stack say about what it allocates.
struct StackRole {
  StackPhase phase = StackPhase::kNone;
  bool is_state = false;       // it makes the optimizer's state
  bool is_recomputed = false;  // a checkpoint's forward, in backward
  bool is_loss = false;
  bool is_linear = false;  // a product with a weight, which autocast may copy
  bool is_cache = false;
  bool is_workspace = false;
  bool is_communication = false;
  bool is_gradient = false;  // autograd or a loss makes a gradient of it
  bool is_cast = false;      // autocast's copy of a tensor in another type
  uint32_t caller = 0;       // 1 + the frame that called the outermost module; 0 without a module
};

// Returns the role of each stack. O(frames of all stacks).
std::vector<StackRole> StackRoles(const Trace& trace);

}  // namespace memreplay

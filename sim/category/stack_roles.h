// What the frames of a stack say of an allocation that was made under them.
#ifndef MEMREPLAY_SIM_CATEGORY_STACK_ROLES_H_
#define MEMREPLAY_SIM_CATEGORY_STACK_ROLES_H_

#include <cstdint>
#include <vector>

#include "trace/value/trace.h"

namespace memreplay {

// What was running. The innermost of these decides.
enum class StackPhase : uint8_t {
  kNone,       // the program's own code, outside of all of these
  kEmpty,      // no frame at all: a thread without Python, which autograd's are
  kLoad,       // a module is made, moved or filled
  kForward,    // forward() of a module
  kInference,  // one under torch.no_grad() or torch.inference_mode() as decorators
  kBackward,   // autograd, recomputing included
  kOptimizer,  // a step, clipping, scaling of gradients
};

// What the frames of a stack say about what it allocates.
struct StackRole {
  StackPhase phase = StackPhase::kNone;
  bool is_state = false;       // the optimizer's state is made
  bool is_recomputed = false;  // a checkpoint's forward, in backward
  bool is_loss = false;
  bool is_linear = false;  // a product with a weight, which autocast may copy
  bool is_cache = false;
  bool is_workspace = false;
  bool is_communication = false;
  uint32_t caller = 0;  // the frame that called the outermost module, and 1; 0: no module
};

// By stack. O(frames of all stacks).
std::vector<StackRole> StackRoles(const Trace& trace);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_CATEGORY_STACK_ROLES_H_

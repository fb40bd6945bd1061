// Optimizers and gradient clipping: what a step allocates, keeps and uses temporarily.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "synth/session.h"
#include "synth/tensor.h"

namespace memreplay::synth {

// A parameter of a model, with its name in PyTorch.
struct Parameter {
  std::string name;
  Tensor tensor;
};
using Parameters = std::vector<Parameter>;

// The implementations of a step.
enum class OptimizerKind : uint8_t {
  kAdamWFused,    // updates in one kernel; its step counters are on the GPU
  kAdamWForeach,  // a list of temporaries as large as all parameters
  kAdamWSingle,   // temporaries as large as one parameter, one after the other
  kSgd,           // no state; a list of gradients with the weights' decay
};

// An optimizer of torch.optim: its state, and what a step allocates.
class Optimizer {
 public:
  // Takes the parameters in the order in which the optimizer processes them.
  Optimizer(OptimizerKind kind, Parameters parameters)
      : kind_(kind), parameters_(std::move(parameters)) {}

  // Runs a step; the first one creates the state.
  void Step(Session& s);
  void ZeroGrad();  // set_to_none=True

 private:
  void StepGroup(Session& s, absl::Span<const Parameter> group, bool first_step);

  OptimizerKind kind_;
  Parameters parameters_;
  std::vector<Tensor> state_;
};

// Implements torch.nn.utils.clip_grad_norm_.
void ClipGradNorm(Session& s, const Parameters& parameters);

}  // namespace memreplay::synth

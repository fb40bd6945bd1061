// The part of PyTorch that determines lifetimes: which forward values an op keeps for backward, in
// what order gradients are created, and when each is freed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "synth/tensor.h"

namespace memreplay::synth {

class Session;
using Tensors = std::vector<Tensor>;

// Computes the gradients of an op's inputs, in the order of the inputs, from the gradients of its
// outputs (which it may move from) and what the op saved. The gradient is empty for inputs that
// require none.
using BackwardFunction =
    std::function<Tensors(Session& session, Tensors& grads, const Tensors& saved)>;

// An op that was executed and can be run backwards once.
struct Node {
  static constexpr uint64_t kAccumulate = ~uint64_t{0};  // collects a leaf's gradient

  struct Edge {
    std::shared_ptr<Node> node;  // null: this input requires no gradient
    size_t output = 0;           // of that node
  };
  struct Output {
    Sizes sizes;
    DType dtype;
  };

  uint64_t sequence = 0;  // later ops run backwards first
  std::vector<Edge> inputs;
  std::vector<Output> outputs;
  Tensors saved;  // freed when backward has run
  BackwardFunction backward;
};

// Runs backwards from `root`, whose gradient is `grad`, by the rules of PyTorch's engine that
// affect memory:
//   * Of the nodes whose gradients are complete, the youngest runs first, but collecting a leaf's
//     gradient precedes everything.
//   * A node's incoming gradients live until its outgoing ones exist and are converted to the type
//     and size of their forward values; then what the node saved is freed.
//   * A second gradient for the same value is added to the first in place if nothing else refers to
//     that.
void RunBackward(Session& session, const Tensor& root, Tensor grad);
// Runs backwards from a scalar, with a gradient of ones.
void RunBackward(Session& session, const Tensor& loss);

// Adds a gradient to a leaf: the first one is stored as it is, later ones are added in place.
void AccumulateGrad(Session& session, Tensor grad, Tensor* leaf_grad);

}  // namespace memreplay::synth

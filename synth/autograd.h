// The part of PyTorch that decides how long things live: which forward values an
// op keeps for backward, in what order the gradients are made, and when each is
// freed.
#ifndef MEMREPLAY_SYNTH_AUTOGRAD_H_
#define MEMREPLAY_SYNTH_AUTOGRAD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "synth/tensor.h"

namespace memreplay::synth {

class Session;
using Tensors = std::vector<Tensor>;

// From the gradients of an op's outputs (which it may move from) and what it
// saved to the gradients of its inputs, in the order of the inputs; empty for
// those that require none.
using BackwardFunction =
    std::function<Tensors(Session& session, Tensors& grads, const Tensors& saved)>;

// An op that happened and can be run backwards, once.
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

// Runs backwards from `root`, whose gradient is `grad`. Rules of PyTorch's engine
// that matter here: of the nodes whose gradients are complete, the youngest runs,
// and collecting a leaf's gradient goes before everything; a node's incoming
// gradients live until its outgoing ones have been made and brought to the type
// and size of the forward value each belongs to; then what it saved is freed; a
// second gradient for the same value is added to the first in place if nothing
// else refers to that.
void RunBackward(Session& session, const Tensor& root, Tensor grad);
// The same for a scalar, with a gradient of ones.
void RunBackward(Session& session, const Tensor& loss);

// The first gradient of a leaf is taken as it is, later ones are added in place.
void AccumulateGrad(Session& session, Tensor grad, Tensor* leaf_grad);

}  // namespace memreplay::synth

#endif  // MEMREPLAY_SYNTH_AUTOGRAD_H_

// nanoGPT's train.py for any model: micro-steps, clipping, the optimizer, evaluation.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "synth/autograd.h"
#include "synth/optimizer.h"
#include "synth/session.h"
#include "synth/tensor.h"
#include "synth/trainer_config.h"
#include "trace/value/trace.h"

namespace memreplay::synth {

// A model on the GPU.
class Model {
 public:
  struct Output {
    Tensor logits;
    Tensor loss;
  };

  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  virtual Output Forward(const Tensor& indices, const Tensor& targets) = 0;
  // Implements loss.backward() of the scaled loss.
  virtual void Backward(const Tensor& loss) { RunBackward(s_, loss); }
  // Returns each parameter once, in the order of model.named_parameters().
  const Parameters& parameters() const { return parameters_; }

 protected:
  explicit Model(Session& s) : s_(s) {}
  // Creates the next parameter.
  Tensor NewParameter(const std::string& name, Sizes sizes);

  Session& s_;
  Parameters parameters_;
};

// Orders parameters as configure_optimizers() does: those with two dimensions, which decay, come
// first.
Parameters OptimizerOrder(const Parameters& parameters);

// Implements model.to("cuda").
using MakeModel = std::function<std::unique_ptr<Model>(Session& session)>;

// Returns a run on batches of [batch_size, length] as a schedule. Phases: "model", "eval@iter0",
// then for each iteration i "it<i>.fwd<m>" and "it<i>.bwd<m>" for each micro-step m, "it<i>.step",
// "it<i>.after"; "eval" and "end". Every size is what PyTorch requests; the allocator rounds.
// `header` is that of the schedule.
Trace TrainingProgram(const TrainerConfig& config, int64_t length, const MakeModel& make_model,
                      std::string header);

}  // namespace memreplay::synth

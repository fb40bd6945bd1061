// nanoGPT's train.py for any model: micro-steps, clipping, the optimizer, evaluation.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "synth/session.h"
#include "synth/tensor.h"
#include "synth/trainer_config.h"
#include "trace/value/trace.h"

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

// Implements model.to("cuda").
using MakeModel = std::function<std::unique_ptr<Model>(Session& session)>;

// Returns a run on batches of [batch_size, length] as a schedule. Phases: "model", "eval@iter0",
// then for each iteration i "it<i>.fwd<m>" and "it<i>.bwd<m>" for each micro-step m, "it<i>.step",
// "it<i>.after"; "eval" and "end". Every size is what PyTorch requests; the allocator rounds.
// `header` is that of the schedule.
Trace TrainingProgram(const TrainerConfig& config, int64_t length, const MakeModel& make_model,
                      std::string header);

}  // namespace memreplay::synth

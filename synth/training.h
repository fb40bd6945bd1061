// nanoGPT's train.py, whatever the model: micro-steps, clipping, the optimizer,
// evaluation.
#ifndef MEMREPLAY_SYNTH_TRAINING_H_
#define MEMREPLAY_SYNTH_TRAINING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

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
  virtual Output Forward(const Tensor& indices, const Tensor& targets) = 0;
  // loss.backward(), the loss scaled.
  virtual void Backward(Session& s, const Tensor& loss);
  // Once each, in the order of model.named_parameters().
  virtual const Parameters& parameters() const = 0;
};

// As configure_optimizers() groups them: those with two dimensions decay.
Parameters OptimizerOrder(const Parameters& parameters);

// model.to("cuda")
using MakeModel = std::function<std::unique_ptr<Model>(Session& session)>;

// A run on batches of [batch_size, length]. Phases: "model", "eval@iter0", then
// for each iteration i "it<i>.fwd<m>" and "it<i>.bwd<m>" for each micro-step m,
// "it<i>.step", "it<i>.after"; "eval" and "end". Every size is what PyTorch
// requests; the allocator rounds. `header` is the program's.
Trace TrainingProgram(const TrainerConfig& config, int64_t length, const MakeModel& make_model,
                      std::string header);

}  // namespace memreplay::synth

#endif  // MEMREPLAY_SYNTH_TRAINING_H_

// nanoGPT's train.py.
#include "trace/synth/nanogpt.h"

#include <algorithm>
#include <utility>

#include "trace/strings.h"
#include "trace/synth/nanogpt_compiled.h"
#include "trace/synth/nanogpt_model.h"
#include "trace/synth/ops.h"
#include "trace/synth/optimizer.h"

namespace memreplay::synth {
namespace {

OptimizerKind OptimizerOf(const NanoGptConfig& config) {
  if (config.optimizer == "adamw_foreach") return OptimizerKind::kAdamWForeach;
  if (config.optimizer == "adamw_single") return OptimizerKind::kAdamWSingle;
  if (config.optimizer == "sgd") return OptimizerKind::kSgd;
  return OptimizerKind::kAdamWFused;
}

std::optional<DType> AutocastOf(const NanoGptConfig& config) {
  if (config.dtype == "float16") return DType::kFloat16;
  if (config.dtype == "bfloat16") return DType::kBFloat16;
  return std::nullopt;
}

class Training {
 public:
  Training(Session& s, const NanoGptConfig& config) : s_(s), config_(config) {}

  void Run() {
    s_.writer().Phase("model");
    NanoGpt model(s_, config_);
    std::optional<CompiledNanoGpt> compiled;
    if (config_.compile) compiled.emplace(s_, config_, model);
    compiled_ = compiled.has_value() ? &*compiled : nullptr;
    Optimizer optimizer(OptimizerOf(config_), model.OptimizerOrder());
    Batch batch = GetBatch();
    Tensors scaler;
    NanoGpt::Output output;  // the names `logits` and `loss`: bound until the next forward
    const int64_t iterations = std::min(config_.iterations, config_.max_iters);
    for (int64_t i = 0; i < iterations; ++i) {
      if (i % config_.eval_interval == 0 && (i > 0 || config_.eval_first)) {
        EstimateLoss(model, StrCat("eval@iter", i));
      }
      if (config_.eval_only) break;
      if (i == 0 && uses_scaler()) {
        // Made when first needed, and kept: the scale and its growth tracker.
        for (int k = 0; k < 2; ++k) {
          scaler.push_back(s_.New("scaler state", {}, DType::kFloat32, "other"));
        }
      }
      for (int64_t m = 0; m < config_.gradient_accumulation_steps; ++m) {
        s_.writer().Phase(StrCat("it", i, ".fwd", m));
        MicroStep(model, output, batch, StrCat("it", i, ".bwd", m));
      }
      s_.writer().Phase(StrCat("it", i, ".step"));
      Step(model, optimizer);
      s_.writer().Phase(StrCat("it", i, ".after"));
    }
    if (config_.eval_last && !config_.eval_only) EstimateLoss(model, "eval");
    s_.writer().Phase("end");
    finished_ = s_.writer().Finish(
        StrCat("{\"config\":", ToJson(config_), ",\"meta\":{\"generator\":\"nanogpt\"}}"));
  }

  Trace& finished() { return finished_; }

 private:
  struct Batch {
    Tensor x;
    Tensor y;
  };

  Batch GetBatch() {
    const Sizes sizes = {config_.batch_size, config_.block_size};
    Batch batch;
    batch.x = s_.New("X", sizes, DType::kInt64, "input");  // 8 BT
    batch.y = s_.New("Y", sizes, DType::kInt64, "input");
    return batch;
  }

  bool uses_scaler() const { return config_.dtype == "float16"; }

  NanoGpt::Output Forward(NanoGpt& model, const Batch& batch) {
    return compiled_ != nullptr ? compiled_->Forward(batch.x, batch.y)
                                : model.Forward(batch.x, batch.y);
  }

  void MicroStep(NanoGpt& model, NanoGpt::Output& output, Batch& batch,
                 const std::string& backward_phase) {
    {
      const Autocast autocast(s_, AutocastOf(config_));
      output = Forward(model, batch);
      output.loss = Scale(s_, output.loss, "loss / accum");
    }
    batch = GetBatch();
    s_.writer().Phase(backward_phase);
    // A scaler that is not enabled returns the loss itself.
    const Tensor scaled = uses_scaler() ? Scale(s_, output.loss, "scaled loss") : output.loss;
    if (compiled_ != nullptr) {
      compiled_->Backward();
    } else {
      RunBackward(s_, scaled);
    }
  }

  void Step(NanoGpt& model, Optimizer& optimizer) {
    Tensors found_inf;  // and the inverse scale: until the scaler's update()
    if (uses_scaler()) {
      for (int i = 0; i < 3; ++i) {
        found_inf.push_back(s_.New("scaler unscale", {}, DType::kFloat32, "temporary"));
      }
    }
    if (config_.grad_clip != 0) ClipGradNorm(s_, model.parameters());
    optimizer.Step(s_);
    found_inf.clear();
    optimizer.ZeroGrad();
  }

  // estimate_loss(): forward only, the names bound to the pass before.
  void EstimateLoss(NanoGpt& model, const std::string& phase) {
    s_.writer().Phase(phase);
    const GradMode no_grad(s_, false);
    s_.set_training(false);
    const int64_t all = 2 * config_.eval_iters;  // of the two splits
    const int64_t passes = config_.eval_passes == 0 ? all : std::min(all, config_.eval_passes);
    Batch batch;
    NanoGpt::Output output;
    for (int64_t pass = 0; pass < passes; ++pass) {
      s_.writer().Moment(StrCat("pass ", pass + 1));
      batch = GetBatch();
      const Autocast autocast(s_, AutocastOf(config_));
      output = Forward(model, batch);
    }
    s_.set_training(true);
  }

  Session& s_;
  const NanoGptConfig& config_;
  CompiledNanoGpt* compiled_ = nullptr;  // null: eager
  Trace finished_;
};

}  // namespace

absl::StatusOr<Trace> NanoGptProgram(const NanoGptConfig& config) {
  if (absl::Status status = Validate(config); !status.ok()) return status;
  Session session(config.platform());
  Training training(session, config);
  training.Run();
  return std::move(training.finished());
}

}  // namespace memreplay::synth

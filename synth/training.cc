#include "synth/training.h"

#include <algorithm>
#include <utility>

#include "synth/ops.h"
#include "trace/value/strings.h"

namespace memreplay::synth {
namespace {

OptimizerKind OptimizerOf(const TrainerConfig& config) {
  if (config.optimizer == "adamw_foreach") return OptimizerKind::kAdamWForeach;
  if (config.optimizer == "adamw_single") return OptimizerKind::kAdamWSingle;
  if (config.optimizer == "sgd") return OptimizerKind::kSgd;
  return OptimizerKind::kAdamWFused;
}

// Orders parameters as configure_optimizers() does: those with two dimensions, which decay, come
// first.
Parameters OptimizerOrder(const Parameters& parameters) {
  Parameters ordered;
  for (const bool decays : {true, false}) {
    for (const Parameter& parameter : parameters) {
      if ((parameter.tensor.sizes().size() >= 2) == decays) ordered.push_back(parameter);
    }
  }
  return ordered;
}

// Implements torch.nn.utils.clip_grad_norm_.
void ClipGradNorm(Session& s, const Parameters& parameters) {
  constexpr int64_t kChunk = 65536;  // elements that one block of the kernel sums
  const auto count = static_cast<int64_t>(parameters.size());
  int64_t largest = 0;
  int64_t chunks = 0;
  for (const Parameter& parameter : parameters) {
    const int64_t own = DividedUp(parameter.tensor.element_count(), kChunk);
    largest = std::max(largest, own);
    chunks += own;
  }
  const auto number = [&s](std::string_view op) {
    return s.New(op, {}, DType::kFloat32, kTemporary);
  };
  Tensor total;
  {
    std::vector<Tensor> norms;
    const bool compact = s.platform().norms_compact;
    auto begins = compact ? s.NewScratch("foreach_norm begins", 8 * (count + 1)) : nullptr;
    auto partial_sums = s.NewScratch("foreach_norm", 4 * (compact ? chunks : count * largest));
    for (const Parameter& parameter : parameters) {
      norms.push_back(number(StrCat("norm ", parameter.name)));
    }
    begins = partial_sums = nullptr;
    const auto stacked = s.NewScratch("clip norms", 4 * count);
    total = number("clip total norm");
  }
  // The coefficient min(1, limit / (total + epsilon)), by which the gradients are multiplied.
  Tensor sum = number("clip total norm + epsilon");
  Tensor reciprocal = number("clip reciprocal");
  const Tensor factor = number("clip factor");
  sum = reciprocal = Tensor();
  const Tensor clamped = number("clip factor, at most 1");
}

class Training {
 public:
  Training(Session& s, const TrainerConfig& config, int64_t length)
      : s_(s), config_(config), length_(length) {}

  Trace Run(const MakeModel& make_model, std::string header) {
    s_.writer().Phase("model");
    const std::unique_ptr<Model> model = make_model(s_);
    Optimizer optimizer(OptimizerOf(config_), OptimizerOrder(model->parameters()));
    Batch batch = GetBatch();
    Model::Output output;  // the names `logits` and `loss`, bound until the next forward
    const int64_t iterations = std::min(config_.iterations, config_.max_iters);
    for (int64_t i = 0; i < iterations; ++i) {
      if (i % config_.eval_interval == 0 && (i > 0 || config_.eval_first)) {
        EstimateLoss(*model, StrCat("eval@iter", i));
      }
      if (config_.eval_only) break;
      for (int64_t m = 0; m < config_.gradient_accumulation_steps; ++m) {
        s_.writer().Phase(StrCat("it", i, ".fwd", m));
        MicroStep(*model, output, batch, StrCat("it", i, ".bwd", m));
      }
      s_.writer().Phase(StrCat("it", i, ".step"));
      Step(*model, optimizer);
      s_.writer().Phase(StrCat("it", i, ".after"));
    }
    if (config_.eval_last && !config_.eval_only) EstimateLoss(*model, "eval");
    s_.writer().Phase("end");
    // Finishes before anything is freed: what is alive now is alive at the end of the schedule.
    return s_.writer().Finish(std::move(header));
  }

 private:
  struct Batch {
    Tensor x;
    Tensor y;
  };

  Batch GetBatch() {
    const Sizes sizes = {config_.batch_size, length_};
    Batch batch;
    batch.x = s_.New("X", sizes, DType::kInt64, "input");  // 8 BT
    batch.y = s_.New("Y", sizes, DType::kInt64, "input");
    return batch;
  }

  bool uses_scaler() const { return config_.dtype == "float16"; }

  void MicroStep(Model& model, Model::Output& output, Batch& batch,
                 const std::string& backward_phase) {
    {
      const Autocast autocast(s_, config_.autocast());
      output = model.Forward(batch.x, batch.y);
      output.loss = Scale(s_, output.loss, "loss / accum");
    }
    batch = GetBatch();
    s_.writer().Phase(backward_phase);
    if (uses_scaler() && scaler_.empty()) {
      // The scale and its growth tracker are created on first use and kept.
      for (int k = 0; k < 2; ++k) {
        scaler_.push_back(s_.New("scaler state", {}, DType::kFloat32, "other"));
      }
    }
    // A disabled scaler returns the loss itself.
    const Tensor scaled = uses_scaler() ? Scale(s_, output.loss, "scaled loss") : output.loss;
    model.Backward(scaled);
  }

  void Step(const Model& model, Optimizer& optimizer) {
    Tensors found_inf;  // whether a gradient overflowed; lives until the scaler's update()
    if (uses_scaler()) found_inf.push_back(Unscale());
    if (config_.grad_clip != 0) ClipGradNorm(s_, model.parameters());
    // An optimizer in one kernel reads it on the GPU; for others the host reads it.
    if (uses_scaler() && OptimizerOf(config_) == OptimizerKind::kAdamWFused) {
      found_inf.push_back(ScalerNumber("scaler found_inf"));
    }
    optimizer.Step(s_);
    found_inf.clear();
    optimizer.ZeroGrad();
  }

  Tensor ScalerNumber(std::string_view op) { return s_.New(op, {}, DType::kFloat32, "temporary"); }

  // Implements GradScaler.unscale_(); found_inf and the inverse scale are copied for each GPU.
  Tensor Unscale() {
    auto scale = s_.NewScratch("scaler scale, fp64", 8);
    auto inverse64 = s_.NewScratch("scaler inverse scale, fp64", 8);
    scale = nullptr;
    const Tensor inverse = ScalerNumber("scaler inverse scale");
    inverse64 = nullptr;
    const Tensor found_inf = ScalerNumber("scaler found_inf");
    Tensor found_inf_there = ScalerNumber("scaler found_inf");
    const Tensor inverse_there = ScalerNumber("scaler inverse scale");
    return found_inf_there;
  }

  // Implements estimate_loss(): forward only, with the names bound to the previous pass.
  void EstimateLoss(Model& model, const std::string& phase) {
    s_.writer().Phase(phase);
    const GradMode no_grad(s_, false);
    s_.set_training(false);
    const int64_t all = 2 * config_.eval_iters;  // of the two splits
    const int64_t passes = config_.eval_passes == 0 ? all : std::min(all, config_.eval_passes);
    Batch batch;
    Model::Output output;
    for (int64_t pass = 0; pass < passes; ++pass) {
      s_.writer().Moment(StrCat("pass ", pass + 1));
      batch = GetBatch();
      const Autocast autocast(s_, config_.autocast());
      output = model.Forward(batch.x, batch.y);
    }
    s_.set_training(true);
  }

  Session& s_;
  const TrainerConfig& config_;
  const int64_t length_;
  Tensors scaler_;
};

Tensor NewLike(Session& s, std::string_view op, const Tensor& like, std::string_view tag) {
  return s.New(op, like.sizes(), like.dtype(), tag);
}

}  // namespace

Tensor Model::NewParameter(const std::string& name, Sizes sizes) {
  Tensor parameter = s_.New(name, std::move(sizes), DType::kFloat32, "parameter");
  parameter.MakeParameter();
  parameters_.push_back({name, parameter});
  return parameter;
}

Trace TrainingProgram(const TrainerConfig& config, int64_t length, const MakeModel& make_model,
                      std::string header) {
  Session session(config.platform());
  return Training(session, config, length).Run(make_model, std::move(header));
}

void Optimizer::Step(Session& s) {
  const bool first_step = state_.empty();
  // Processes parameters by group: first those that decay (two dimensions or more), then the
  // others.
  const auto rest = std::find_if(parameters_.begin(), parameters_.end(),
                                 [](const Parameter& p) { return p.tensor.sizes().size() < 2; });
  const auto decaying = static_cast<size_t>(rest - parameters_.begin());
  const absl::Span<const Parameter> all(parameters_);
  StepGroup(s, all.first(decaying), first_step);
  StepGroup(s, all.subspan(decaying), first_step);
}

void Optimizer::StepGroup(Session& s, absl::Span<const Parameter> group, bool first_step) {
  if (kind_ == OptimizerKind::kSgd) {
    std::vector<Tensor> decayed;  // gradients plus the weights' decay
    for (const Parameter& parameter : group) {
      if (parameter.tensor.sizes().size() < 2) continue;
      decayed.push_back(
          NewLike(s, StrCat("foreach_add ", parameter.name), parameter.tensor, kTemporary));
    }
    return;
  }
  for (const Parameter& parameter : group) {
    if (!first_step) break;
    const Tensor& p = parameter.tensor;
    if (kind_ == OptimizerKind::kAdamWFused) {
      state_.push_back(s.New(StrCat("step ", parameter.name), {}, DType::kFloat32, "optimizer"));
    }
    state_.push_back(NewLike(s, StrCat("exp_avg ", parameter.name), p, "optimizer"));     // 4 N
    state_.push_back(NewLike(s, StrCat("exp_avg_sq ", parameter.name), p, "optimizer"));  // 4 N
  }
  if (kind_ == OptimizerKind::kAdamWForeach) {
    std::vector<Tensor> roots;  // of exp_avg_sq: the denominators
    for (const Parameter& parameter : group) {
      roots.push_back(
          NewLike(s, StrCat("foreach_sqrt ", parameter.name), parameter.tensor, kTemporary));
    }
  } else if (kind_ == OptimizerKind::kAdamWSingle) {
    Tensor denominator;  // a name: lives until the next one exists
    for (const Parameter& parameter : group) {
      const Tensor root = NewLike(s, StrCat("sqrt ", parameter.name), parameter.tensor, kTemporary);
      denominator =
          NewLike(s, StrCat("denominator ", parameter.name), parameter.tensor, kTemporary);
    }
  }
}

void Optimizer::ZeroGrad() {
  for (Parameter& parameter : parameters_) parameter.tensor.ClearGrad();
}

}  // namespace memreplay::synth

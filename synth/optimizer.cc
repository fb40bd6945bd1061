#include "synth/optimizer.h"

#include <algorithm>

#include "trace/value/strings.h"

namespace memreplay::synth {
namespace {

Tensor NewLike(Session& s, std::string_view op, const Tensor& like, std::string_view tag) {
  return s.New(op, like.sizes(), like.dtype(), tag);
}

}  // namespace

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

}  // namespace memreplay::synth

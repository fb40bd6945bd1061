#include "trace/synth/optimizer.h"

#include <algorithm>

#include "trace/value/strings.h"

namespace memreplay::synth {
namespace {

constexpr std::string_view kTemporary = "temporary";

Tensor NewLike(Session& s, std::string_view op, const Tensor& like, std::string_view tag) {
  return s.New(op, like.sizes(), like.dtype(), tag);
}

}  // namespace

void Optimizer::Step(Session& s) {
  if (kind_ == OptimizerKind::kSgd) return;
  if (state_.empty()) {
    for (const Parameter& parameter : parameters_) {
      const Tensor& p = parameter.tensor;
      if (kind_ == OptimizerKind::kAdamWFused) {
        state_.push_back(s.New(StrCat("step ", parameter.name), {}, DType::kFloat32, "optimizer"));
      }
      state_.push_back(NewLike(s, StrCat("exp_avg ", parameter.name), p, "optimizer"));     // 4 N
      state_.push_back(NewLike(s, StrCat("exp_avg_sq ", parameter.name), p, "optimizer"));  // 4 N
    }
  }
  if (kind_ == OptimizerKind::kAdamWForeach) {
    std::vector<Tensor> roots;  // of exp_avg_sq: the denominators
    for (const Parameter& parameter : parameters_) {
      roots.push_back(
          NewLike(s, StrCat("foreach_sqrt ", parameter.name), parameter.tensor, kTemporary));
    }
  } else if (kind_ == OptimizerKind::kAdamWSingle) {
    for (const Parameter& parameter : parameters_) {
      const Tensor root = NewLike(s, StrCat("sqrt ", parameter.name), parameter.tensor, kTemporary);
      const Tensor denominator =
          NewLike(s, StrCat("denominator ", parameter.name), parameter.tensor, kTemporary);
    }
  }
}

void Optimizer::ZeroGrad() {
  for (Parameter& parameter : parameters_) parameter.tensor.ClearGrad();
}

void ClipGradNorm(Session& s, const Parameters& parameters) {
  constexpr int64_t kChunk = 65536;  // elements that one block of the kernel adds up
  int64_t largest = 0;
  for (const Parameter& parameter : parameters) {
    largest = std::max(largest, parameter.tensor.element_count());
  }
  const auto count = static_cast<int64_t>(parameters.size());
  const auto partial_sums = s.NewScratch(
      "foreach_norm", Bytes(static_cast<uint64_t>(4 * count * ((largest + kChunk - 1) / kChunk))));
  std::vector<Tensor> norms;
  for (const Parameter& parameter : parameters) {
    norms.push_back(s.New(StrCat("norm ", parameter.name), {}, DType::kFloat32, kTemporary));
  }
}

}  // namespace memreplay::synth

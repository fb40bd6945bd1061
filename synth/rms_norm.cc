// RMSNorm, and the ops that implement it before PyTorch had a kernel for it.
#include <utility>

#include "synth/ops.h"

namespace memreplay::synth {
namespace {}  // namespace

Tensor Square(Session& s, const Tensor& x) {
  Tensor y = s.New("pow", x.sizes(), x.dtype());
  s.Record({x}, {y}, {x}, [](Session& session, const Tensors& grads, const Tensors&) -> Tensors {
    const Tensor& g = grads[0];  // g * (2 * x.pow(1))
    const Tensor power = session.New("pow grad power", g.sizes(), g.dtype(), kTemporary);
    const Tensor twice = session.New("pow grad times 2", g.sizes(), g.dtype(), kTemporary);
    return {session.New("pow grad", g.sizes(), g.dtype(), kTemporary)};
  });
  return y;
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the op holds its input while it runs.
Tensor Mean(Session& s, Tensor x) {
  Sizes sizes = x.sizes();
  sizes.back() = 1;
  Tensor y = s.New("mean", std::move(sizes), x.dtype());
  s.Record({x}, {y}, {},
           [from = x.sizes()](Session& session, const Tensors& grads, const Tensors&) -> Tensors {
             return {session.New("mean grad", from, grads[0].dtype(), kTemporary)};
           });
  return y;
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the op holds its input while it runs.
Tensor AddNumber(Session& s, Tensor x) {
  Tensor y = s.New("add", x.sizes(), x.dtype());
  s.Record({x}, {y}, {},
           [](Session&, const Tensors& grads, const Tensors&) -> Tensors { return {grads[0]}; });
  return y;
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the op holds its input while it runs.
Tensor Rsqrt(Session& s, Tensor x) {
  Tensor y = s.New("rsqrt", x.sizes(), x.dtype());
  s.Record({x}, {y}, {y}, [](Session& session, const Tensors& grads, const Tensors&) -> Tensors {
    const Tensor& g = grads[0];  // -0.5 * g * y.pow(3)
    const Tensor cube = session.New("rsqrt grad cube", g.sizes(), g.dtype(), kTemporary);
    const Tensor half = session.New("rsqrt grad half", g.sizes(), g.dtype(), kTemporary);
    return {session.New("rsqrt grad", g.sizes(), g.dtype(), kTemporary)};
  });
  return y;
}

namespace {

Tensor FusedRmsNorm(Session& s, const Tensor& x, const Tensor& weight) {
  Sizes rows = x.sizes();
  rows.back() = 1;
  Tensor y = s.New("rms_norm", x.sizes(), DType::kFloat32);                // 4 BTC
  Tensor rstd = s.New("rms_norm rstd", std::move(rows), DType::kFloat32);  // 4 BT
  s.Record(
      {x, weight}, {y}, {x, rstd},
      [channels = x.size(-1)](Session& session, const Tensors&, const Tensors& saved) -> Tensors {
        Tensor dx = session.New("rms_norm dx", saved[0].sizes(), DType::kFloat32, kTemporary);
        Tensor dw = session.New("rms_norm dweight", {channels}, DType::kFloat32, kTemporary);
        return {std::move(dx), std::move(dw)};
      });
  return y;
}

}  // namespace

Tensor RmsNorm(Session& s, const Tensor& x, const Tensor& weight, bool fused) {
  const Scope scope(s, "rms_norm");
  if (fused) return FusedRmsNorm(s, x, weight);
  // Keeps x (its producer's, 4 BTC), the roots (4 BT) and x scaled (4 BTC).
  Tensor root = Square(s, x);
  root = Mean(s, std::move(root));
  root = AddNumber(s, std::move(root));
  root = Rsqrt(s, std::move(root));
  const Tensor scaled = Multiply(s, x, root);
  root = Tensor();
  return Multiply(s, scaled, weight);
}

}  // namespace memreplay::synth

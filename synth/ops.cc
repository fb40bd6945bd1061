// Ops on elements, rows and shapes. Matrix products and attention are in matrix_ops.cc, and
// Embedding in embedding.cc.
#include "synth/ops.h"

#include <utility>

namespace memreplay::synth {
namespace {

DType Promote(DType a, DType b) { return a == b ? a : DType::kFloat32; }

// Returns the backward of an op with one input. Its gradient has these sizes and this type, or
// those of the result's gradient.
BackwardFunction OneGradient(std::string_view op, std::optional<Sizes> sizes = std::nullopt,
                             std::optional<DType> dtype = std::nullopt,
                             std::string_view tag = kTemporary) {
  return [=](Session& s, const Tensors& grads, const Tensors&) -> Tensors {
    return {s.New(op, sizes.value_or(grads[0].sizes()), dtype.value_or(grads[0].dtype()), tag)};
  };
}

// Computes an op whose result has the size and type of x, as has its gradient.
Tensor Elementwise(Session& s, std::string_view op, const Tensor& x, const Tensors& saved,
                   std::string_view grad) {
  Tensor y = s.New(op, x.sizes(), x.dtype());
  s.Record({x}, {y}, saved, OneGradient(grad));
  return y;
}

// Passes the gradient on as it is.
Tensors SameGradient(Session& /*s*/, const Tensors& grads, const Tensors& /*saved*/) {
  return {grads[0]};
}

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

// Returns log probabilities of the logits' type, since an explicit dtype keeps autocast from
// casting.
Tensor LogSoftmax(Session& s, const Tensor& logits) {
  Tensor y = s.New("log_softmax", logits.sizes(), logits.dtype(), kLogits);  // h BTV
  s.Record({logits}, {y}, {y},
           OneGradient("log_softmax grad", std::nullopt, std::nullopt, kLogits));
  return y;
}

Tensor NllLoss(Session& s, const Tensor& log_probabilities, const Tensor& targets) {
  Tensor loss = s.New("loss", {}, DType::kFloat32, kLogits);
  Tensor weight = s.New("total_weight", {}, DType::kFloat32, kLogits);
  s.Record(
      {log_probabilities}, {loss}, {log_probabilities, targets, weight},
      OneGradient("nll_loss grad", log_probabilities.sizes(), log_probabilities.dtype(), kLogits));
  return loss;
}

}  // namespace

Tensor Add(Session& s, const Tensor& a, const Tensor& b) {
  const Sizes& sizes = a.element_count() >= b.element_count() ? a.sizes() : b.sizes();
  Tensor y = s.New("add", sizes, Promote(a.dtype(), b.dtype()));
  // The gradient goes to both inputs; the engine casts and sums if they differ.
  s.Record({a, b}, {y}, {}, [](Session&, const Tensors& grads, const Tensors&) -> Tensors {
    return {grads[0], grads[0]};
  });
  return y;
}

Tensor Multiply(Session& s, const Tensor& a, const Tensor& b) {
  const Sizes& sizes = a.element_count() >= b.element_count() ? a.sizes() : b.sizes();
  const DType dtype = Promote(a.dtype(), b.dtype());
  Tensor y = s.New("mul", sizes, dtype);
  const bool wants_a = a.requires_grad();
  const bool wants_b = b.requires_grad();
  s.Record({a, b}, {y}, {wants_b ? a : Tensor(), wants_a ? b : Tensor()},
           [wants_a, wants_b](Session& session, const Tensors& grads, const Tensors&) -> Tensors {
             const Tensor& g = grads[0];
             Tensors result(2);
             if (wants_b) result[1] = session.New("mul grad", g.sizes(), g.dtype(), kTemporary);
             if (wants_a) result[0] = session.New("mul grad", g.sizes(), g.dtype(), kTemporary);
             return result;
           });
  return y;
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the op holds its input while it runs.
Tensor Scale(Session& s, Tensor x, std::string_view op) {
  return Elementwise(s, op, x, {}, "scale grad");
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the op holds its input while it runs.
Tensor Gelu(Session& s, Tensor x) { return Elementwise(s, "gelu", x, {x}, "gelu grad"); }

// NOLINTNEXTLINE(performance-unnecessary-value-param): the op holds its input while it runs.
Tensor Silu(Session& s, Tensor x) { return Elementwise(s, "silu", x, {x}, "silu grad"); }

Tensor Dropout(Session& s, Tensor x, double p) {
  if (p == 0 || !s.training()) return x;
  const Tensor mask = s.New("dropout mask", x.sizes(), DType::kBool);  // 1 byte per element
  return Elementwise(s, "dropout", x, {mask}, "dropout grad");
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the op holds its input while it runs.
Tensor MaskedFill(Session& s, Tensor x, const Tensor& mask) {
  return Elementwise(s, "masked_fill", x, {mask}, "masked_fill grad");
}

Tensor EqualsZero(Session& s, const Tensor& x) { return s.New("eq", x.sizes(), DType::kBool); }

Tensor Cast(Session& s, Tensor x, DType dtype, std::string_view op, std::string_view tag) {
  if (x.dtype() == dtype) return x;
  Tensor y = s.New(op, x.sizes(), dtype, tag);
  s.Record(
      {x}, {y}, {},
      OneGradient("cast grad", std::nullopt, x.dtype(), tag == kLogits ? kLogits : kTemporary));
  return y;
}

Tensor AutocastArgument(Session& s, const Tensor& x) {
  const std::optional<DType> dtype = s.autocast();
  if (!dtype.has_value() || !x.defined() || x.dtype() != DType::kFloat32) return x;
  if (!x.is_parameter()) return Cast(s, x, *dtype);
  Tensor cast = s.CachedCast(x);
  if (!cast.defined()) {
    cast = Cast(s, x, *dtype, "weight cast", "weight_cast");
    s.CacheCast(x, cast);
  }
  return cast;
}

Tensor LayerNorm(Session& s, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const int64_t rows = x.element_count() / x.size(-1);
  Tensor y = s.New("layer_norm", x.sizes(), DType::kFloat32);       // 4 BTC
  Tensor mean = s.New("layer_norm mean", {rows}, DType::kFloat32);  // 4 BT
  Tensor rstd = s.New("layer_norm rstd", {rows}, DType::kFloat32);  // 4 BT
  s.Record({x, weight, bias}, {y}, {x, mean, rstd},
           [channels = x.size(-1), has_bias = bias.defined()](Session& session, const Tensors&,
                                                              const Tensors& saved) -> Tensors {
             Tensors grads(3);
             grads[0] = session.New("layer_norm dx", saved[0].sizes(), DType::kFloat32, kTemporary);
             grads[1] = session.New("layer_norm dweight", {channels}, DType::kFloat32, kTemporary);
             if (has_bias) {
               grads[2] = session.New("layer_norm dbias", {channels}, DType::kFloat32, kTemporary);
             }
             return grads;
           });
  return y;
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the op holds its input while it runs.
Tensor Softmax(Session& s, Tensor x) {
  const DType dtype = s.autocast().has_value() ? DType::kFloat32 : x.dtype();
  // The kernel itself converts fp16 to fp32; bf16 is converted before.
  const Tensor input = x.dtype() == DType::kBFloat16 ? Cast(s, x, dtype, "softmax cast") : x;
  Tensor y = s.New("softmax", x.sizes(), dtype);
  s.Record(
      {input}, {y}, {y},
      [from = input.dtype()](Session& session, const Tensors& grads, const Tensors&) -> Tensors {
        const Tensor& g = grads[0];
        Tensor grad = session.New("softmax grad", g.sizes(), from, kTemporary);
        const Tensor product =
            session.New("softmax grad product", g.sizes(), g.dtype(), kTemporary);
        return {std::move(grad)};
      });
  return y;
}

// RMSNorm, and the ops that implement it before PyTorch had a kernel for it.

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
  s.Record({x}, {y}, {}, OneGradient("mean grad", x.sizes()));
  return y;
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the op holds its input while it runs.
Tensor AddNumber(Session& s, Tensor x) {
  Tensor y = s.New("add", x.sizes(), x.dtype());
  s.Record({x}, {y}, {}, SameGradient);
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

Tensor Rotate(Session& s, const Tensor& x, const Tensor& angles) {
  Tensor y = s.New("rotate", x.sizes(), DType::kFloat32);  // 4 BTHD
  // The op is linear in x, so only the angles are kept.
  s.Record({x}, {y}, {angles},
           [](Session& session, const Tensors& grads, const Tensors& saved) -> Tensors {
             const Tensor conjugate =
                 session.New("rotate conjugate", saved[0].sizes(), DType::kComplex64, kTemporary);
             return {session.New("rotate grad", grads[0].sizes(), DType::kFloat32, kTemporary)};
           });
  return y;
}

Tensor CrossEntropy(Session& s, const Tensor& logits, const Tensor& targets) {
  const Scope scope(s, "cross_entropy");
  const int64_t classes = logits.size(-1);
  const Tensor rows = Reshape(s, logits, {logits.element_count() / classes, classes});
  const Tensor log_probabilities = LogSoftmax(s, rows);
  // nll_loss is on autocast's fp32 list; cross_entropy itself is not.
  const Tensor input = s.autocast().has_value()
                           ? Cast(s, log_probabilities, DType::kFloat32, "nll_loss input", kLogits)
                           : log_probabilities;  // 4 BTV
  return NllLoss(s, input, targets);
}

Tensor Reshape(Session& s, const Tensor& x, const Sizes& sizes, std::string_view op) {
  std::optional<Sizes> strides = ViewStrides(x.sizes(), x.strides(), sizes);
  Tensor y;
  if (strides.has_value()) {
    y = x.View(sizes, *std::move(strides));
  } else {
    y = s.New(op, sizes, x.dtype(),
              s.grad_enabled() || op == "clone (reshape)" ? "activation" : kTemporary);
  }
  s.Record({x}, {y}, {},
           [from = x.sizes()](Session& session, const Tensors& grads, const Tensors&) -> Tensors {
             return {Reshape(session, grads[0], from, "clone (reshape grad)")};
           });
  return y;
}

Tensor Transpose(Session& s, const Tensor& x, int a, int b) {
  Tensor y = x.Transposed(a, b);
  s.Record({x}, {y}, {}, [a, b](Session&, const Tensors& grads, const Tensors&) -> Tensors {
    return {grads[0].Transposed(a, b)};
  });
  return y;
}

Tensor Contiguous(Session& s, const Tensor& x) {
  if (x.is_contiguous()) return x;
  Tensor y = s.New("contiguous", x.sizes(), x.dtype());
  s.Record({x}, {y}, {}, SameGradient);
  return y;
}

Tensor Expand(Session& s, const Tensor& x, int dim, int64_t times) {
  Sizes sizes = x.sizes();
  Sizes strides = x.strides();
  sizes[static_cast<size_t>(dim)] = times;
  strides[static_cast<size_t>(dim)] = 0;
  Tensor y = x.View(std::move(sizes), std::move(strides));
  s.Record({x}, {y}, {}, OneGradient("expand grad (sum)", x.sizes()));
  return y;
}

Tensors Split(Session& s, const Tensor& x, const Sizes& lengths) {
  Tensors parts;
  for (const int64_t length : lengths) {
    Sizes sizes = x.sizes();
    sizes.back() = length;
    parts.push_back(x.View(std::move(sizes), x.strides()));
  }
  s.Record({x}, parts, {}, OneGradient("split grad (cat)", x.sizes()));
  return parts;
}

Tensor Checkpoint(Session& s, const std::function<Tensor(const Tensor&)>& block, const Tensor& x) {
  Tensor y;
  {
    const GradMode no_graph(s, false);
    y = block(x).Detached();
  }
  s.Record({x}, {y}, {x},
           [block, autocast = s.autocast()](Session& session, Tensors& grads,
                                            const Tensors& saved) -> Tensors {
             Tensor input = saved[0].Detached();
             input.RequireGrad();
             Tensor output;
             {
               const GradMode graph(session, true);
               const Autocast again(session, autocast);
               output = block(input);
             }
             RunBackward(session, output, grads[0]);  // Python's checkpoint() also holds it
             return {std::move(input.grad())};
           });
  return y;
}

}  // namespace memreplay::synth

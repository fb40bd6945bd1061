// Matrix products and attention.
#include <array>
#include <utility>

#include "synth/ops.h"

namespace memreplay::synth {
namespace {

// Creates a tensor of shape [B, H, T, D], stored as [B, T, H, D].
Tensor NewHeads(Session& s, std::string_view op, const Tensor& like, std::string_view tag) {
  return s.New(op, {like.size(0), like.size(2), like.size(1), like.size(3)}, like.dtype(), tag)
      .Transposed(1, 2);
}

std::array<Tensor, 3> NewHeadGradients(Session& s, const Tensors& saved) {
  return {NewHeads(s, "dq", saved[0], kTemporary), NewHeads(s, "dk", saved[1], kTemporary),
          NewHeads(s, "dv", saved[2], kTemporary)};
}

// Creates a gradient that is the result of a product.
Tensor NewProduct(Session& s, std::string_view op, const Tensor& of) {
  Tensor grad = s.New(op, of.sizes(), of.dtype(), kTemporary);
  s.UseGemm();
  return grad;
}

// Returns the scratch memory of efficient attention's backward, which sums dq in fp32: blocks of
// queries by channels, each with its semaphores. For 16-bit q with more than 64 channels, GPUs with
// small blocks use a different amount, which is not modelled.
int64_t GradientBlocks(const Platform& platform, const Tensor& q) {
  const int64_t channels = q.size(3);
  const bool fp32 = q.dtype() == DType::kFloat32;
  const bool small = channels <= 64 || (fp32 && platform.small_attention_blocks);
  const int64_t side = small ? 64 : 128;
  const int64_t blocks = q.size(0) * q.size(1) * (RoundUpTo(q.size(2), side) / side) *
                         (RoundUpTo(channels, side) / side);
  return blocks * (4 * side * side + (fp32 && !small ? 32 : 16));
}

Tensors EfficientAttentionGradients(Session& s, const Tensors& kept) {
  std::array<Tensor, 3> grads = NewHeadGradients(s, kept);
  const Tensor& query = kept[0];
  const int64_t row_sums = 4 * query.size(0) * query.size(1) * query.size(2);
  std::shared_ptr<Storage> product, sums;
  if (query.dtype() == DType::kFloat32) {
    // Separate ops sum it over the channels and convert it to the order of heads.
    product = s.NewScratch("efficient_attention delta product", 4 * query.element_count());
    sums = s.NewScratch("efficient_attention delta sums", row_sums);
  }
  const auto delta = s.NewScratch("efficient_attention delta", row_sums);
  sums = product = nullptr;
  const auto blocks =
      s.NewScratch("efficient_attention dq_accum", GradientBlocks(s.platform(), query));
  return {grads[0], grads[1], grads[2]};
}

}  // namespace

Tensor Linear(Session& s, Tensor x, const Tensor& weight, const Tensor& bias,
              std::string_view tag) {
  // Autocast processes the arguments from the last to the first.
  const Tensor b = AutocastArgument(s, bias);
  const Tensor w = AutocastArgument(s, weight);
  x = AutocastArgument(s, x);
  Sizes sizes = x.sizes();
  sizes.back() = w.size(0);
  Tensor y = s.New("mm", std::move(sizes), x.dtype(), tag);
  if (b.defined()) {
    s.UseAddmm();
  } else {
    s.UseGemm();
  }
  s.Record({x, w, b}, {y}, {x, w},
           [has_bias = b.defined()](Session& session, const Tensors& grads,
                                    const Tensors& saved) -> Tensors {
             Tensor dw, dx;
             if (!has_bias) dw = NewProduct(session, "mm dweight", saved[1]);
             dx = NewProduct(session, "mm dx", saved[0]);
             if (has_bias)
               dw = NewProduct(session, "mm dweight", saved[1]);  // addmm: reversed order
             // The bias was broadcast over the rows, so the engine sums its gradient. The product
             // has two dimensions; its view has those of x, and the weight's view is transposed.
             return {dx.AsView(), dw.AsView(), has_bias ? grads[0] : Tensor()};
           });
  return y;
}

Tensor BatchedMatMul(Session& s, Tensor a, const Tensor& b) {
  const int64_t batch = a.size(0) * a.size(1);
  const int64_t m = a.size(2);
  const int64_t k = a.size(3);
  const int64_t n = b.size(3);
  const Sizes sizes = {a.size(0), a.size(1), m, n};
  const Tensor right = AutocastArgument(s, b);
  a = AutocastArgument(s, a);
  // bmm takes three dimensions, so operands that cannot be folded are copied.
  const Tensor left3 = Reshape(s, a, {batch, m, k});
  const Tensor right3 = Reshape(s, right, {batch, k, n});
  Tensor y = s.New("bmm", {batch, m, n}, a.dtype());
  s.UseGemm();
  s.Record({left3, right3}, {y}, {left3, right3},
           [](Session& session, const Tensors&, const Tensors& saved) -> Tensors {
             Tensor db = NewProduct(session, "bmm db", saved[1]);
             Tensor da = NewProduct(session, "bmm da", saved[0]);
             return {std::move(da), std::move(db)};
           });
  return Reshape(s, y, sizes);
}

Tensor FlashAttention(Session& s, const Tensor& q, const Tensor& k, const Tensor& v, bool dropout) {
  const int64_t batch = q.size(0);
  const int64_t heads = q.size(1);
  const int64_t length = q.size(2);
  Tensor out = NewHeads(s, "flash_attention", q, "activation");  // h BTC
  Tensor lse = s.New("flash_attention logsumexp", {batch, heads, length}, DType::kFloat32);
  Tensors saved = {q, k, v, out, lse};
  if (s.platform().flash_random_state_on_gpu) {
    saved.push_back(s.New("flash_attention rng_state", {2}, DType::kInt64));
    saved.push_back(s.New("flash_attention unused", {}, DType::kInt64));
    if (dropout) saved[5] = s.New("flash_attention rng_state", {2}, DType::kInt64);
  }
  s.Record({q, k, v}, {out}, saved,
           [](Session& session, const Tensors&, const Tensors& kept) -> Tensors {
             std::array<Tensor, 3> grads = NewHeadGradients(session, kept);
             const Tensor& query = kept[0];
             // One value per query row, padded to 128 rows and 32 channels, in fp32.
             const int64_t rows = query.size(0) * query.size(1) * RoundUpTo(query.size(2), 128);
             const auto softmax_d = session.NewScratch("flash_attention softmax_d", 4 * rows);
             const auto dq_sum = session.NewScratch("flash_attention dq_accum",
                                                    4 * rows * RoundUpTo(query.size(3), 32));
             return {grads[0], grads[1], grads[2]};
           });
  return out;
}

Tensor EfficientAttention(Session& s, const Tensor& q, const Tensor& k, const Tensor& v) {
  Tensor seed;
  Tensor offset;
  if (s.platform().efficient_random_state_on_gpu) {
    seed = s.New("efficient_attention seed", {}, DType::kInt64);
    offset = s.New("efficient_attention offset", {}, DType::kInt64);
  }
  Tensor out = NewHeads(s, "efficient_attention", q, "activation");
  Tensor lse;  // computed for backward only
  if (s.grad_enabled()) {
    lse = s.New("efficient_attention logsumexp", {q.size(0), q.size(1), RoundUpTo(q.size(2), 32)},
                DType::kFloat32);
  }
  s.Record({q, k, v}, {out}, {q, k, v, out, lse, seed, offset},
           [](Session& session, const Tensors&, const Tensors& kept) {
             return EfficientAttentionGradients(session, kept);
           });
  return out;
}

}  // namespace memreplay::synth

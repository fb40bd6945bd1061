// PyTorch's ops with respect to memory: what each allocates, what it saves for backward and what
// its backward allocates. Sizes are formulas next to the allocation they belong to; B, T, C, H, D,
// V are batch, sequence, channels, heads, channels per head and vocabulary.
//
// To add an op, allocate its results with Session::New, pass what it saves and how its gradients
// are created to Session::Record, and return the result. Lifetimes follow from the references to
// each tensor. LayerNorm in ops.cc is an example.
//
// Pass a tensor by std::move if Python would have dropped its name by the time the op returns.
#pragma once

#include <cstdint>
#include <functional>

#include "synth/session.h"
#include "synth/tensor.h"

namespace memreplay::synth {

// --- element by element
Tensor Add(Session& s, const Tensor& a, const Tensor& b);
Tensor Multiply(Session& s, const Tensor& a, const Tensor& b);  // saves both; broadcasts
Tensor Square(Session& s, const Tensor& x);                     // x.pow(2)
Tensor AddNumber(Session& s, Tensor x);                         // x + epsilon
Tensor Rsqrt(Session& s, Tensor x);
Tensor Scale(Session& s, Tensor x, std::string_view op);  // by a number
Tensor Gelu(Session& s, Tensor x);
Tensor Silu(Session& s, Tensor x);
Tensor Dropout(Session& s, Tensor x, double p);  // returns x if p is 0 or the model evaluates
Tensor MaskedFill(Session& s, Tensor x, const Tensor& mask);
Tensor EqualsZero(Session& s, const Tensor& x);
// Casts to the autocast type, or returns x if autocast is off or no cast is needed. Weights are
// cast once while autocast lasts.
Tensor AutocastArgument(Session& s, const Tensor& x);
Tensor Cast(Session& s, Tensor x, DType dtype, std::string_view op = "cast",
            std::string_view tag = "activation");

// --- rows
Tensor LayerNorm(Session& s, const Tensor& x, const Tensor& weight, const Tensor& bias);
// Computes a softmax, which is on autocast's fp32 list: the result of a 16-bit x is fp32.
Tensor Softmax(Session& s, Tensor x);
Tensor Mean(Session& s, Tensor x);  // over the last dimension, which becomes 1
// Computes x * (x.pow(2).mean(-1) + eps).rsqrt() * weight, op by op as before PyTorch 2.8 or in one
// kernel.
Tensor RmsNorm(Session& s, const Tensor& x, const Tensor& weight, bool fused);
Tensor Embedding(Session& s, const Tensor& weight, const Tensor& indices);
// Computes F.cross_entropy(logits.view(-1, V), targets.view(-1)).
Tensor CrossEntropy(Session& s, const Tensor& logits, const Tensor& targets);

// Rotates pairs of adjacent channels of fp32 x [B, T, H, D], as complex numbers, by `angles` [T, D
// / 2] of 8 bytes each.
Tensor Rotate(Session& s, const Tensor& x, const Tensor& angles);

// --- shapes; views where strides allow it, else copies
Tensor Reshape(Session& s, const Tensor& x, const Sizes& sizes,
               std::string_view op = "clone (reshape)");
Tensor Transpose(Session& s, const Tensor& x, int a, int b);
Tensor Contiguous(Session& s, const Tensor& x);
// Returns a view that repeats dimension `dim`, of size 1.
Tensor Expand(Session& s, const Tensor& x, int dim, int64_t times);
// Returns views of `x` of the given lengths along its last dimension.
Tensors Split(Session& s, const Tensor& x, const Sizes& lengths);

// --- matrices
// Multiplies x [..., in] by weight [out, in], transposed; bias may be empty.
Tensor Linear(Session& s, Tensor x, const Tensor& weight, const Tensor& bias,
              std::string_view tag = "activation");
// Computes a [B, H, M, K] @ b [B, H, K, N].
Tensor BatchedMatMul(Session& s, Tensor a, const Tensor& b);
// Computes scaled_dot_product_attention; q is [B, H, T, D], k and v may have fewer heads. The
// result is [B, H, T, D], stored as [B, T, H, D].
Tensor FlashAttention(Session& s, const Tensor& q, const Tensor& k, const Tensor& v,
                      bool dropout = false);
Tensor EfficientAttention(Session& s, const Tensor& q, const Tensor& k, const Tensor& v);

// Implements torch.utils.checkpoint: keeps only x, and runs `block` again for its backward.
Tensor Checkpoint(Session& s, const std::function<Tensor(const Tensor&)>& block, const Tensor& x);

}  // namespace memreplay::synth

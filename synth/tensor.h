// Tensors without numbers: sizes, strides, a type and the storage that backs
// them. A storage requests its memory when it is made and frees it when the last
// tensor that refers to it goes, as in PyTorch; so a model written with C++
// values has the lifetimes that CPython's reference counts give it.
#ifndef MEMREPLAY_SYNTH_TENSOR_H_
#define MEMREPLAY_SYNTH_TENSOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "synth/program_writer.h"
#include "trace/value/units.h"

namespace memreplay::synth {

enum class DType : uint8_t { kFloat32, kFloat16, kBFloat16, kInt64, kBool, kComplex64 };

uint64_t BytesPerElement(DType dtype);
std::string_view ShortName(DType dtype);  // "f32"

using Sizes = std::vector<int64_t>;

int64_t ElementCount(const Sizes& sizes);
// Of a tensor laid out row by row.
Sizes ContiguousStrides(const Sizes& sizes);
// The strides with which `to` names the same elements in the same order; nothing
// if they have to be copied for it. Both have the same number of elements.
std::optional<Sizes> ViewStrides(const Sizes& sizes, const Sizes& strides, const Sizes& to);

// Memory that tensors share.
class Storage {
 public:
  // `writer` must outlive it.
  Storage(ProgramWriter* writer, Bytes size, const Label& label)
      : writer_(writer), handle_(writer->Allocate(size, label)) {}
  ~Storage() { writer_->Free(handle_); }
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  uint64_t handle() const { return handle_; }

 private:
  ProgramWriter* writer_;
  uint64_t handle_;
};

struct Node;

// Refers to a tensor; copies refer to the same one. Empty if default-made.
class Tensor {
 public:
  Tensor() = default;
  Tensor(std::shared_ptr<Storage> storage, DType dtype, Sizes sizes, Sizes strides);

  bool defined() const { return impl_ != nullptr; }
  const Sizes& sizes() const { return impl_->sizes; }
  const Sizes& strides() const { return impl_->strides; }
  // Negative dimensions count from the last.
  int64_t size(int dim) const;
  int64_t element_count() const { return ElementCount(impl_->sizes); }
  DType dtype() const { return impl_->dtype; }
  bool is_contiguous() const { return impl_->strides == ContiguousStrides(impl_->sizes); }
  uint64_t handle() const { return impl_->storage->handle(); }
  // Nothing else refers to the memory.
  bool is_only_owner() const { return impl_.use_count() == 1 && impl_->storage.use_count() == 1; }
  // The same, but for what AsView() keeps.
  bool is_only_owner_as_view() const {
    return impl_.use_count() == 1 && impl_->storage.use_count() == (impl_->base != nullptr ? 2 : 1);
  }

  // The same memory seen otherwise, unknown to autograd.
  Tensor View(Sizes sizes, Sizes strides) const;
  Tensor Transposed(int a, int b) const;
  // The same tensor as a view that keeps what it is a view of: no gradient is added
  // to it in place.
  Tensor AsView() const;
  Tensor Detached() const { return View(impl_->sizes, impl_->strides); }

  // --- autograd (autograd.h)
  bool requires_grad() const { return defined() && (impl_->is_leaf || impl_->grad_fn != nullptr); }
  // Makes it a leaf: backward() puts its gradient into grad().
  void RequireGrad() { impl_->is_leaf = true; }
  void MakeParameter() { impl_->is_leaf = impl_->is_parameter = true; }
  bool is_parameter() const { return impl_->is_parameter; }
  Tensor& grad() { return impl_->grad.front(); }
  void ClearGrad() { impl_->grad.front() = Tensor(); }
  void SetGradFn(std::shared_ptr<Node> node, size_t output) const {
    impl_->grad_fn = std::move(node);
    impl_->output = output;
  }
  // The node that takes its gradient, and as which of its outputs. Null if none
  // does.
  const std::shared_ptr<Node>& grad_fn() const { return impl_->grad_fn; }
  size_t output() const { return impl_->output; }
  // Of a leaf: the node that collects its gradient, made on first use.
  std::shared_ptr<Node> accumulator() const;
  // Identity of the tensor, for caches.
  const void* identity() const { return impl_.get(); }

 private:
  struct Impl {
    std::shared_ptr<Storage> storage;
    DType dtype = DType::kFloat32;
    Sizes sizes;
    Sizes strides;
    bool is_leaf = false;
    bool is_parameter = false;
    std::shared_ptr<Node> grad_fn;
    size_t output = 0;
    std::weak_ptr<Node> accumulator;
    std::shared_ptr<Impl> base;                         // of AsView()
    std::vector<Tensor> grad = std::vector<Tensor>(1);  // one element; Tensor is incomplete here
  };
  std::shared_ptr<Impl> impl_;
};

}  // namespace memreplay::synth

#endif  // MEMREPLAY_SYNTH_TENSOR_H_

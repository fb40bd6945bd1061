// Tensors without numbers: sizes, strides, a type and the storage that backs them. A storage
// requests its memory when it is created and frees it with the last tensor that refers to it, as in
// PyTorch; so a model written with C++ values has the lifetimes that CPython's reference counts
// give it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "synth/program_writer.h"
#include "trace/value/units.h"

namespace memreplay::synth {

// The type of an element.
enum class DType : uint8_t { kFloat32, kFloat16, kBFloat16, kInt64, kBool, kComplex64 };

uint64_t BytesPerElement(DType dtype);
std::string_view ShortName(DType dtype);  // "f32"

using Sizes = std::vector<int64_t>;

inline int64_t DividedUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit; }
inline int64_t RoundUpTo(int64_t value, int64_t unit) { return DividedUp(value, unit) * unit; }

int64_t ElementCount(const Sizes& sizes);
// Returns the strides of a tensor that is laid out row by row.
Sizes ContiguousStrides(const Sizes& sizes);
// Returns the strides with which `to` names the same elements in the same order; nullopt if that
// requires a copy. Both must have the same number of elements.
std::optional<Sizes> ViewStrides(const Sizes& sizes, const Sizes& strides, const Sizes& to);

// Memory that tensors share.
class Storage {
 public:
  // Allocates memory; `writer` must outlive the object.
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

// A reference to a tensor; copies refer to the same one. Empty if default-constructed.
class Tensor {
 public:
  Tensor() = default;
  Tensor(std::shared_ptr<Storage> storage, DType dtype, Sizes sizes, Sizes strides);

  bool defined() const { return impl_ != nullptr; }
  const Sizes& sizes() const { return impl_->sizes; }
  const Sizes& strides() const { return impl_->strides; }
  // Returns the size of a dimension; negative ones count from the last.
  int64_t size(int dim) const;
  int64_t element_count() const { return ElementCount(impl_->sizes); }
  DType dtype() const { return impl_->dtype; }
  bool is_contiguous() const { return impl_->strides == ContiguousStrides(impl_->sizes); }
  uint64_t handle() const { return impl_->storage->handle(); }
  // Returns whether nothing else refers to the memory.
  bool is_only_owner() const { return impl_.use_count() == 1 && impl_->storage.use_count() == 1; }
  // Does the same, but ignores what AsView() keeps.
  bool is_only_owner_as_view() const {
    return impl_.use_count() == 1 && impl_->storage.use_count() == (impl_->base != nullptr ? 2 : 1);
  }

  // Returns another view of the same memory that is unknown to autograd.
  Tensor View(Sizes sizes, Sizes strides) const;
  Tensor Transposed(int a, int b) const;
  // Returns the same tensor as a view that keeps its base, so that no gradient is added to it in
  // place.
  Tensor AsView() const;
  Tensor Detached() const { return View(impl_->sizes, impl_->strides); }

  // --- autograd (session.h)
  bool requires_grad() const { return defined() && (impl_->is_leaf || impl_->grad_fn != nullptr); }
  // Makes the tensor a leaf: backward() stores its gradient in grad().
  void RequireGrad() { impl_->is_leaf = true; }
  void MakeParameter() { impl_->is_leaf = impl_->is_parameter = true; }
  bool is_parameter() const { return impl_->is_parameter; }
  Tensor& grad() { return impl_->grad.front(); }
  void ClearGrad() { impl_->grad.front() = Tensor(); }
  void SetGradFn(std::shared_ptr<Node> node, size_t output) const {
    impl_->grad_fn = std::move(node);
    impl_->output = output;
  }
  // Returns the node that takes the gradient of this tensor, whose output() it is; null if there is
  // none.
  const std::shared_ptr<Node>& grad_fn() const { return impl_->grad_fn; }
  size_t output() const { return impl_->output; }
  // Returns the node that collects a leaf's gradient and creates it on first use.
  std::shared_ptr<Node> accumulator() const;
  // Returns the identity of the tensor, for caches.
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

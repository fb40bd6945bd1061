#include "synth/tensor.h"

#include <utility>

#include "synth/session.h"

namespace memreplay::synth {
namespace {

struct DTypeRow {
  uint64_t bytes;
  std::string_view name;
};
constexpr DTypeRow kDTypes[] = {{4, "f32"}, {2, "f16"}, {2, "bf16"},
                                {8, "i64"}, {1, "b8"},  {8, "c64"}};  // by DType

}  // namespace

uint64_t BytesPerElement(DType dtype) { return kDTypes[static_cast<size_t>(dtype)].bytes; }
std::string_view ShortName(DType dtype) { return kDTypes[static_cast<size_t>(dtype)].name; }

int64_t ElementCount(const Sizes& sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return count;
}

Sizes ContiguousStrides(const Sizes& sizes) {
  Sizes strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= sizes[i];
  }
  return strides;
}

std::optional<Sizes> ViewStrides(const Sizes& sizes, const Sizes& strides, const Sizes& to) {
  Sizes result(to.size());
  size_t next = to.size();  // dimensions of `to` from here on have a stride
  for (size_t i = sizes.size(); i > 0;) {
    // Finds the longest run of dimensions, to the left, with even steps.
    const int64_t step = strides[i - 1];
    int64_t run = sizes[--i];
    while (i > 0 && (sizes[i - 1] == 1 || strides[i - 1] == step * run)) run *= sizes[--i];
    int64_t covered = 1;
    while (next > 0 && (covered < run || to[next - 1] == 1)) {
      result[next - 1] = step * covered;
      covered *= to[--next];
    }
    if (covered != run) return std::nullopt;
  }
  while (next > 0) result[--next] = 1;  // only dimensions of size 1 are left
  return result;
}

Tensor::Tensor(std::shared_ptr<Storage> storage, DType dtype, Sizes sizes, Sizes strides)
    : impl_(std::make_shared<Impl>()) {
  impl_->storage = std::move(storage);
  impl_->dtype = dtype;
  impl_->sizes = std::move(sizes);
  impl_->strides = std::move(strides);
}

int64_t Tensor::size(int dim) const {
  const auto rank = static_cast<int>(impl_->sizes.size());
  return impl_->sizes[static_cast<size_t>(dim < 0 ? dim + rank : dim)];
}

Tensor Tensor::View(Sizes sizes, Sizes strides) const {
  return Tensor(impl_->storage, impl_->dtype, std::move(sizes), std::move(strides));
}

Tensor Tensor::AsView() const {
  Tensor view = Detached();
  view.impl_->base = impl_;
  return view;
}

Tensor Tensor::Transposed(int a, int b) const {
  const auto rank = static_cast<int>(impl_->sizes.size());
  const auto i = static_cast<size_t>(a < 0 ? a + rank : a);
  const auto j = static_cast<size_t>(b < 0 ? b + rank : b);
  Sizes new_sizes = sizes();
  Sizes new_strides = strides();
  std::swap(new_sizes[i], new_sizes[j]);
  std::swap(new_strides[i], new_strides[j]);
  return View(std::move(new_sizes), std::move(new_strides));
}

std::shared_ptr<Node> Tensor::accumulator() const {
  std::shared_ptr<Node> node = impl_->accumulator.lock();
  if (node != nullptr) return node;
  node = std::make_shared<Node>();
  node->sequence = Node::kAccumulate;
  node->outputs.push_back({sizes(), dtype()});
  std::weak_ptr<Impl> leaf = impl_;
  node->backward = [leaf](Session& session, Tensors& grads, const Tensors&) -> Tensors {
    const std::shared_ptr<Impl> impl = leaf.lock();
    if (impl == nullptr) return {};
    Tensor& grad = impl->grad.front();
    const bool is_first = !grad.defined();
    AccumulateGrad(session, std::move(grads[0]), &grad);
    if (is_first && impl->is_parameter) session.writer().Retag(grad.handle(), "gradient");
    return {};
  };
  impl_->accumulator = node;
  return node;
}

}  // namespace memreplay::synth

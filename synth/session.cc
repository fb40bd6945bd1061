#include "synth/session.h"

#include <algorithm>

#include "trace/value/strings.h"

namespace memreplay::synth {

std::string Session::Name(std::string_view op) const {
  std::string name;
  for (const std::string& scope : scopes_) StrAppend(&name, name.empty() ? "" : ".", scope);
  StrAppend(&name, name.empty() ? "" : " ", op);
  return name;
}

Tensor Session::New(std::string_view op, Sizes sizes, DType dtype, std::string_view tag) {
  const Bytes size(static_cast<uint64_t>(ElementCount(sizes)) * BytesPerElement(dtype));
  auto storage =
      std::make_shared<Storage>(&writer_, size, Label{Name(op), tag, ShortName(dtype), sizes});
  Sizes strides = ContiguousStrides(sizes);
  return Tensor(std::move(storage), dtype, std::move(sizes), std::move(strides));
}

std::shared_ptr<Storage> Session::NewScratch(std::string_view op, int64_t bytes) {
  return std::make_shared<Storage>(&writer_, Bytes(static_cast<uint64_t>(bytes)),
                                   Label{Name(op), "workspace", "", {}});
}

void Session::Record(const Tensors& inputs, const Tensors& outputs, const Tensors& saved,
                     BackwardFunction backward) {
  bool wanted = false;
  for (const Tensor& input : inputs) wanted |= input.requires_grad();
  if (!grad_enabled_ || !wanted) return;
  auto node = std::make_shared<Node>();
  node->sequence = next_sequence_++;
  for (const Tensor& input : inputs) {
    if (!input.requires_grad()) {
      node->inputs.push_back({});
    } else if (input.grad_fn() != nullptr) {
      node->inputs.push_back({input.grad_fn(), input.output()});
    } else {
      node->inputs.push_back({input.accumulator(), 0});
    }
  }
  // A saved output must not keep its own node alive.
  for (const Tensor& tensor : saved) {
    node->saved.push_back(tensor.defined() ? tensor.Detached() : Tensor());
  }
  // Gradients are named after the scope of their op.
  node->backward = [scopes = scopes_, inner = std::move(backward)](Session& session, Tensors& grads,
                                                                   const Tensors& kept) {
    std::vector<std::string> outer = std::exchange(session.scopes_, scopes);
    Tensors result = inner(session, grads, kept);
    session.scopes_ = std::move(outer);
    return result;
  };
  for (size_t i = 0; i < outputs.size(); ++i) {
    node->outputs.push_back({outputs[i].sizes(), outputs[i].dtype()});
    outputs[i].SetGradFn(node, i);
  }
}

void Session::UseGemm() {
  std::shared_ptr<Storage>& workspace = workspaces_[static_cast<size_t>(thread_)];
  if (workspace != nullptr || platform_.cublas_workspace == Bytes(0)) return;
  std::shared_ptr<Storage> storage = std::make_shared<Storage>(
      &writer_, platform_.cublas_workspace,
      Label{thread_ == Thread::kMain ? "cuBLAS workspace" : "cuBLAS workspace (autograd thread)",
            "workspace",
            "",
            {}});
  if (!platform_.workspace_per_call) workspace = std::move(storage);
}

void Session::UseAddmm() {
  constexpr int64_t kWorkspace = 1 << 20;
  std::shared_ptr<Storage>& kept = lt_workspaces_[static_cast<size_t>(thread_)];
  if (platform_.lt_workspace_kept) UseGemm();
  std::shared_ptr<Storage> workspace =
      kept != nullptr ? kept : NewScratch("cublasLt workspace", kWorkspace);
  // cuBLAS's workspace, if kept, is allocated with its handle, which addmm uses too.
  if (!platform_.workspace_per_call) UseGemm();
  if (platform_.lt_workspace_kept) kept = std::move(workspace);
}

void Session::UseRowSum(int64_t rows, int64_t columns) {
  const int64_t vector = columns % 4 == 0 ? 4 : columns % 2 == 0 ? 2 : 1;
  const int64_t threads = 512 / vector;  // of one block
  int64_t width = 1;
  while (width < 32 && 2 * width <= columns / vector) width *= 2;
  const int64_t height = threads / width;
  const int64_t values = DividedUp(rows, height);  // per thread
  if (values < 256) return;
  const int64_t across = DividedUp(columns, width * vector);
  const int64_t down = std::max(
      std::min(DividedUp(platform_.resident_threads / threads, across), DividedUp(values, 16)),
      DividedUp(values, 256));
  if (down < 2) return;
  const auto sums = NewScratch("row sums", 4 * columns * down * width * vector);
  const auto semaphores = NewScratch("row sums' semaphores", 4 * across);
}

Tensor Session::CachedCast(const Tensor& weight) const {
  const auto found = casts_.find(weight.identity());
  return found == casts_.end() ? Tensor() : found->second.second;
}

void Session::CacheCast(const Tensor& weight, const Tensor& cast) {
  casts_.emplace(weight.identity(), std::make_pair(weight, cast));
}

}  // namespace memreplay::synth

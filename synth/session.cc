#include "synth/session.h"

#include <algorithm>
#include <queue>

#include "absl/container/flat_hash_set.h"
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

namespace {

struct Younger {
  bool operator()(const Node* a, const Node* b) const { return a->sequence < b->sequence; }
};

class Engine {
 public:
  explicit Engine(Session& session) : session_(session) {}

  void Run(const Tensor& root, Tensor grad) {
    Node* first = root.grad_fn().get();
    if (first == nullptr) return;
    CountDependencies(first);
    Deliver(first, root.output(), std::move(grad));
    ready_.push(first);
    while (!ready_.empty()) {
      Node* node = ready_.top();
      ready_.pop();
      RunNode(*node);
    }
  }

 private:
  void CountDependencies(Node* first) {
    absl::flat_hash_set<Node*> seen = {first};
    std::vector<Node*> open = {first};
    while (!open.empty()) {
      Node* node = open.back();
      open.pop_back();
      for (const Node::Edge& edge : node->inputs) {
        if (edge.node == nullptr) continue;
        ++dependencies_[edge.node.get()];
        if (seen.insert(edge.node.get()).second) open.push_back(edge.node.get());
      }
    }
  }

  void Deliver(Node* node, size_t output, Tensor grad) {
    Tensors& buffer = buffers_[node];
    buffer.resize(node->outputs.size());
    Tensor& slot = buffer[output];
    if (!slot.defined()) {
      slot = std::move(grad);
    } else if (!slot.is_only_owner()) {
      slot = session_.New("grad sum", slot.sizes(), slot.dtype(), "temporary");
    }  // otherwise the sum is formed in place
  }

  // Converts a gradient to the size and type of its value.
  Tensor Validate(Tensor grad, const Node::Output& value) {
    if (ElementCount(value.sizes) != grad.element_count()) {
      const int64_t columns = ElementCount(value.sizes);
      const int64_t rows = grad.element_count() / columns;
      Tensor sum = session_.New("sum_to_size", value.sizes, grad.dtype(), "temporary");
      if (columns > 1) session_.UseRowSum(rows, columns);
      grad = std::move(sum);
    }
    if (value.dtype != grad.dtype()) {
      grad = session_.New("grad cast", grad.sizes(), value.dtype, "temporary");
    }
    return grad;
  }

  void RunNode(Node& node) {
    Tensors outgoing;
    {
      Tensors incoming = std::move(buffers_.at(&node));
      buffers_.erase(&node);
      outgoing = node.backward(session_, incoming, node.saved);
      for (size_t i = 0; i < outgoing.size(); ++i) {
        const Node::Edge& edge = node.inputs[i];
        if (edge.node == nullptr || !outgoing[i].defined()) continue;
        outgoing[i] = Validate(std::move(outgoing[i]), edge.node->outputs[edge.output]);
      }
      node.saved.clear();
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      Node* next = node.inputs[i].node.get();
      if (next == nullptr) continue;
      if (i < outgoing.size() && outgoing[i].defined()) {
        Deliver(next, node.inputs[i].output, std::move(outgoing[i]));
      }
      if (--dependencies_[next] == 0 && buffers_.contains(next)) ready_.push(next);
    }
    // A long chain of nodes must not be destroyed recursively.
    for (Node::Edge& edge : node.inputs) done_.push_back(std::move(edge.node));
    node.inputs.clear();
  }

  Session& session_;
  absl::flat_hash_map<Node*, int> dependencies_;
  absl::flat_hash_map<Node*, Tensors> buffers_;
  std::priority_queue<Node*, std::vector<Node*>, Younger> ready_;
  std::vector<std::shared_ptr<Node>> done_;
};

}  // namespace

void RunBackward(Session& session, const Tensor& root, Tensor grad) {
  const GradMode no_graph(session, false);
  const OnThread autograd_thread(session, Thread::kAutograd);
  Engine(session).Run(root, std::move(grad));
}

void RunBackward(Session& session, const Tensor& loss) {
  // Python's backward() holds the ones until it returns.
  const Tensor ones = session.New("ones_like", loss.sizes(), loss.dtype(), "temporary");
  RunBackward(session, loss, ones);
}

void AccumulateGrad(Session& session, Tensor grad, Tensor* leaf_grad) {
  if (leaf_grad->defined()) return;
  *leaf_grad = grad.is_only_owner_as_view()
                   ? std::move(grad)
                   : session.New("grad copy", grad.sizes(), grad.dtype(), "temporary");
}

}  // namespace memreplay::synth

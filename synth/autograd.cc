#include "synth/autograd.h"

#include <queue>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "synth/session.h"

namespace memreplay::synth {
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

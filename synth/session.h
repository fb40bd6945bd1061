// The state of PyTorch that ops depend on: whether gradients are enabled, autocast and its cache of
// cast weights, the threads and their cuBLAS workspaces; what determines lifetimes: which forward
// values an op keeps for backward, in what order gradients are created, and when each is freed; and
// the schedule being written.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "synth/program_writer.h"
#include "synth/tensor.h"
#include "trace/value/units.h"

namespace memreplay::synth {

class Session;
using Tensors = std::vector<Tensor>;

// Computes the gradients of an op's inputs, in the order of the inputs, from the gradients of its
// outputs (which it may move from) and what the op saved. The gradient is empty for inputs that
// require none.
using BackwardFunction =
    std::function<Tensors(Session& session, Tensors& grads, const Tensors& saved)>;

// An op that was executed and can be run backwards once.
struct Node {
  static constexpr uint64_t kAccumulate = ~uint64_t{0};  // collects a leaf's gradient

  struct Edge {
    std::shared_ptr<Node> node;  // null: this input requires no gradient
    size_t output = 0;           // of that node
  };
  struct Output {
    Sizes sizes;
    DType dtype;
  };

  uint64_t sequence = 0;  // later ops run backwards first
  std::vector<Edge> inputs;
  std::vector<Output> outputs;
  Tensors saved;  // freed when backward has run
  BackwardFunction backward;
};

// Runs backwards from `root`, whose gradient is `grad`, by the rules of PyTorch's engine that
// affect memory:
//   * Of the nodes whose gradients are complete, the youngest runs first, but collecting a leaf's
//     gradient precedes everything.
//   * A node's incoming gradients live until its outgoing ones exist and are converted to the type
//     and size of their forward values; then what the node saved is freed.
//   * A second gradient for the same value is added to the first in place if nothing else refers to
//     that.
void RunBackward(Session& session, const Tensor& root, Tensor grad);
// Runs backwards from a scalar, with a gradient of ones.
void RunBackward(Session& session, const Tensor& loss);

// Adds a gradient to a leaf: the first one is stored as it is, later ones are added in place.
void AccumulateGrad(Session& session, Tensor grad, Tensor* leaf_grad);

// Tags of what several ops allocate.
inline constexpr std::string_view kTemporary = "temporary";
inline constexpr std::string_view kLogits = "logits";

// The threads that allocate.
enum class Thread : uint8_t { kMain, kAutograd };

// Parameters of sorting and counting on the GPU; a tile is the items that one block processes.
struct DeviceAlgorithms {
  int64_t sort_tile = 3840;
  int64_t runs_tile = 320;
  int64_t multiprocessors = 128;
  bool sorts_by_used_bits = false;   // sort by the used bits of the keys instead of all 64
  bool wide_counts = false;          // 64-bit counts
  bool sums_few_rows_apart = false;  // for an embedding whose few rows occur often
};

// Properties of the release of PyTorch and the GPU.
struct Platform {
  Bytes cublas_workspace = Bytes(8519680);  // :4096:2:16:8; 32 MiB on compute capability 9
  // Whether each GEMM requests and frees the workspace, instead of keeping it per thread.
  bool workspace_per_call = false;
  // The threads that the GPU runs at once, over which sums of rows are spread.
  int64_t resident_threads = int64_t{128} * 1536;
  // Whether addmm's own workspace is kept per thread instead of being freed.
  bool lt_workspace_kept = false;
  // Whether attention keeps its random state in two GPU tensors.
  bool flash_random_state_on_gpu = false;
  bool efficient_random_state_on_gpu = false;
  // Whether blocks of efficient attention's backward have room for 64 x 64 only.
  bool small_attention_blocks = true;
  // Whether norms of many tensors allocate the partial sums that each tensor has, instead of as
  // many as the largest has.
  bool norms_compact = false;
  DeviceAlgorithms algorithms = {};
};

// A training run that is being written: the allocations of its ops, in order.
class Session {
 public:
  explicit Session(const Platform& platform) : platform_(platform) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  ProgramWriter& writer() { return writer_; }
  const Platform& platform() const { return platform_; }

  // Creates a contiguous tensor, named after the scopes and `op`.
  Tensor New(std::string_view op, Sizes sizes, DType dtype, std::string_view tag = "activation");
  // Allocates memory that a kernel needs while it runs, or that a thread keeps.
  std::shared_ptr<Storage> NewScratch(std::string_view op, int64_t bytes);

  // Makes `outputs` differentiable with respect to `inputs`, if gradients are enabled and one of
  // the inputs has one. `saved` is what backward needs, which lives until then. Empty inputs are
  // allowed.
  void Record(const Tensors& inputs, const Tensors& outputs, const Tensors& saved,
              BackwardFunction backward);

  // Prepares a matrix product on the current thread.
  void UseGemm();
  // Prepares a matrix product that adds a bias.
  void UseAddmm();
  // Prepares a sum over the rows of [rows, columns]: if blocks of several rows share a column, they
  // combine their sums in scratch memory. The rule gives what torch 2.6 requests on five GPUs.
  void UseRowSum(int64_t rows, int64_t columns);

  // Returns the 16-bit type that autocast computes in, if it is on.
  std::optional<DType> autocast() const { return autocast_; }
  // Returns an earlier cast of `weight` under this autocast; empty if there is none.
  Tensor CachedCast(const Tensor& weight) const;
  void CacheCast(const Tensor& weight, const Tensor& cast);

  bool grad_enabled() const { return grad_enabled_; }
  bool training() const { return training_; }  // model.train() / model.eval()
  void set_training(bool training) { training_ = training; }

 private:
  friend class GradMode;
  friend class OnThread;
  friend class Autocast;
  friend class Scope;

  std::string Name(std::string_view op) const;

  Platform platform_;
  ProgramWriter writer_;  // outlives everything that holds storages
  std::vector<std::string> scopes_;
  bool grad_enabled_ = true;
  bool training_ = true;
  Thread thread_ = Thread::kMain;
  uint64_t next_sequence_ = 0;
  std::optional<DType> autocast_;
  absl::flat_hash_map<const void*, std::pair<Tensor, Tensor>> casts_;  // weight and its cast
  std::array<std::shared_ptr<Storage>, 2> workspaces_;                 // by Thread
  std::array<std::shared_ptr<Storage>, 2> lt_workspaces_;              // cublasLt's
};

// Sets a part of the state for the object's lifetime.
template <typename T>
class ForNow {
 public:
  ForNow(T& state, T value) : state_(state), before_(std::exchange(state, std::move(value))) {}
  ~ForNow() { state_ = std::move(before_); }
  ForNow(const ForNow&) = delete;
  ForNow& operator=(const ForNow&) = delete;

 protected:
  T& state_;
  T before_;
};

// Implements torch.no_grad() / torch.enable_grad().
struct GradMode : ForNow<bool> {
  GradMode(Session& session, bool enabled) : ForNow(session.grad_enabled_, enabled) {}
};

// Makes allocations those of another thread.
struct OnThread : ForNow<Thread> {
  OnThread(Session& session, Thread thread) : ForNow(session.thread_, thread) {}
};

// Implements torch.autocast(); the outermost object drops the cast weights at its end.
class Autocast : ForNow<std::optional<DType>> {
 public:
  Autocast(Session& session, std::optional<DType> dtype)
      : ForNow(session.autocast_, dtype), session_(session) {}
  ~Autocast() {
    state_ = before_;
    if (!before_.has_value()) session_.casts_.clear();
  }

 private:
  Session& session_;
};

// Names what is created in its lifetime: Scope h(s, "h.0"), attn(s, "attn") result in "h.0.attn
// mm".
class Scope {
 public:
  Scope(Session& session, std::string name) : session_(session) {
    session.scopes_.push_back(std::move(name));
  }
  ~Scope() { session_.scopes_.pop_back(); }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Session& session_;
};

}  // namespace memreplay::synth

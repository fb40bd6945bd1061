// The state of PyTorch that ops depend on: whether gradients are wanted, autocast
// and its cache of cast weights, the threads and their cuBLAS workspaces; and the
// program being written.
#ifndef MEMREPLAY_SYNTH_SESSION_H_
#define MEMREPLAY_SYNTH_SESSION_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "synth/autograd.h"
#include "synth/program_writer.h"
#include "synth/tensor.h"
#include "trace/value/units.h"

namespace memreplay::synth {

enum class Thread : uint8_t { kMain, kAutograd };

// Of sorting and counting on the card; items that one block takes are its tile.
struct DeviceAlgorithms {
  int64_t sort_tile = 3840;
  int64_t runs_tile = 320;
  int64_t multiprocessors = 128;
  bool sorts_by_used_bits = false;   // of the keys, instead of by all 64
  bool wide_counts = false;          // counts of 64 bits
  bool sums_few_rows_apart = false;  // of an embedding whose few rows occur often
};

// What depends on the release of PyTorch and the GPU.
struct Platform {
  Bytes cublas_workspace = Bytes(8519680);  // :4096:2:16:8; 32 MiB on compute capability 9
  // Each GEMM requests it and frees it, instead of keeping it per thread.
  bool workspace_per_call = false;
  // That the card runs at once, which sums over rows are spread over.
  int64_t resident_threads = int64_t{128} * 1536;
  // addmm's own workspace is kept per thread instead of being freed.
  bool lt_workspace_kept = false;
  // Attention keeps its random state in two GPU tensors.
  bool flash_random_state_on_gpu = false;
  bool efficient_random_state_on_gpu = false;
  // Blocks of efficient attention's backward have room for 64 x 64 only.
  bool small_attention_blocks = true;
  // Norms of many tensors: partial sums for what each has, not for as many as the largest has.
  bool norms_compact = false;
  DeviceAlgorithms algorithms = {};
};

// A training run that is being written down: the allocations of its ops, in order.
class Session {
 public:
  explicit Session(const Platform& platform) : platform_(platform) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  ProgramWriter& writer() { return writer_; }
  const Platform& platform() const { return platform_; }

  // A new contiguous tensor. Its name is that of the scopes and `op`.
  Tensor New(std::string_view op, Sizes sizes, DType dtype, std::string_view tag = "activation");
  // Memory that a kernel needs while it runs, or that a thread keeps.
  std::shared_ptr<Storage> NewScratch(std::string_view op, Bytes size,
                                      std::string_view tag = "workspace");

  // Makes `outputs` differentiable with respect to `inputs`, if gradients are
  // wanted and one of the inputs has one. `saved` is what backward needs and so
  // lives until then. Empty inputs are allowed.
  void Record(const Tensors& inputs, const Tensors& outputs, const Tensors& saved,
              BackwardFunction backward);

  // A matrix product is about to run on the current thread.
  void UseGemm();
  // One that adds a bias.
  void UseAddmm();
  // The sum over the rows of [rows, columns] is about to run: where blocks of several rows share a
  // column, they meet in scratch memory. The rule gives what torch 2.6 requests on five cards.
  void UseRowSum(int64_t rows, int64_t columns);

  // The 16-bit type that autocast computes in, if it is on.
  std::optional<DType> autocast() const { return autocast_; }
  // `weight` as cast before under this autocast; empty if it was not.
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
  ProgramWriter writer_;  // before everything that holds storages
  std::vector<std::string> scopes_;
  bool grad_enabled_ = true;
  bool training_ = true;
  Thread thread_ = Thread::kMain;
  uint64_t next_sequence_ = 0;
  std::optional<DType> autocast_;
  absl::flat_hash_map<const void*, std::pair<Tensor, Tensor>> casts_;  // weight, cast
  std::array<std::shared_ptr<Storage>, 2> workspaces_;                 // by Thread
  std::array<std::shared_ptr<Storage>, 2> lt_workspaces_;              // cublasLt's
};

// with torch.no_grad() / torch.enable_grad(), for the object's lifetime.
class GradMode {
 public:
  GradMode(Session& session, bool enabled)
      : session_(session), before_(std::exchange(session.grad_enabled_, enabled)) {}
  ~GradMode() { session_.grad_enabled_ = before_; }
  GradMode(const GradMode&) = delete;
  GradMode& operator=(const GradMode&) = delete;

 private:
  Session& session_;
  bool before_;
};

// Makes what is allocated while it exists that of another thread.
class OnThread {
 public:
  OnThread(Session& session, Thread thread)
      : session_(session), before_(std::exchange(session.thread_, thread)) {}
  ~OnThread() { session_.thread_ = before_; }
  OnThread(const OnThread&) = delete;
  OnThread& operator=(const OnThread&) = delete;

 private:
  Session& session_;
  Thread before_;
};

// with torch.autocast(): the outermost one forgets the cast weights at its end.
class Autocast {
 public:
  Autocast(Session& session, std::optional<DType> dtype)
      : session_(session), before_(std::exchange(session.autocast_, dtype)) {}
  ~Autocast() {
    session_.autocast_ = before_;
    if (!before_.has_value()) session_.casts_.clear();
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  Session& session_;
  std::optional<DType> before_;
};

// Names what is made in its lifetime: Scope h(s, "h.0"), attn(s, "attn") make
// "h.0.attn mm".
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

#endif  // MEMREPLAY_SYNTH_SESSION_H_

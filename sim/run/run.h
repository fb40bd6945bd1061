// Runs a schedule through an allocator.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/model/allocator.h"
#include "sim/model/caching_allocator.h"
#include "sim/model/device.h"
#include "sim/model/observer.h"
#include "trace/schedule/schedule.h"

namespace memreplay {

// A request that PyTorch would have answered with an exception (a bad settings string, a pool ended
// twice). It is an outcome, not an error of the run.
struct RequestFailure {
  uint64_t request = 0;  // index into Schedule::requests()
  std::string message;
  // Whether it is an OutOfMemoryError that leaves no trace entry: a rejection, or a request of more
  // than 1 EB.
  bool is_out_of_memory = false;
};

// The outcome of a run, apart from what its observers saw.
struct RunResult {
  uint64_t ooms = 0;
  std::vector<RequestFailure> failures;
};

// An object that changes a run, for questions of the kind "what if, just here". It may apply
// requests of its own; a class that only watches is an Observer.
class Intervention {
 public:
  enum class Next : uint8_t { kApply, kSkip, kStop };
  virtual ~Intervention() = default;
  // Called before the request with this index in Schedule::requests() is applied (or skipped, or
  // the run ends). May apply requests of its own to `allocator` with `observer`.
  virtual Next BeforeRequest(size_t request, Allocator& allocator, Observer& observer) = 0;
};

// An intervention that ends a run before the first request for which the condition holds.
template <typename Condition>
class StopWhen final : public Intervention {
 public:
  explicit StopWhen(Condition condition) : condition_(std::move(condition)) {}
  Next BeforeRequest(size_t /*request*/, Allocator& /*allocator*/,
                     Observer& /*observer*/) override {
    return condition_() ? Next::kStop : Next::kApply;
  }

 private:
  Condition condition_;
};

// What takes part in a run in addition to allocator and observers.
struct RunOptions {
  bool check_invariants = false;         // after every request; slow
  Device* device = nullptr;              // informed which request comes next; not owned
  Intervention* intervention = nullptr;  // not owned
  // The settings that the run began with: what restores_settings() goes back to.
  std::string_view conf = {};
};

// Calls allocator.Apply(request, observer) for each request. Observers see marks and settings too.
// O(requests). Replay() (replay.h) does what comes before and after.
RunResult Run(const Schedule& schedule, Allocator& allocator, Observer& observer,
              const RunOptions& options = {});

// Does the same with a caching allocator and an observer of a final class. It is compiled for that
// class, so that no virtual call per event is needed.
template <typename Known>
requires std::is_final_v<Known> RunResult Run(const Schedule& schedule, CachingAllocator& allocator,
                                              Known& observer, const RunOptions& options = {});

namespace run_internal {

inline absl::Status ApplyTo(const Event& request, Allocator& allocator, Observer& observer) {
  return allocator.Apply(request, observer);
}
template <typename Known>
[[gnu::always_inline]] inline absl::Status ApplyTo(const Event& request,
                                                   CachingAllocator& allocator, Known& observer) {
  return allocator.ApplyTo(request, observer);
}

// Applies a request that is neither an allocation nor a free.
absl::Status ApplyOther(const Event& request, const StringTable& strings, const RunOptions& options,
                        Allocator& allocator, Observer& observer);
void Note(size_t request, const absl::Status& status, RunResult& result);

inline constexpr size_t kAhead = 12;  // requests; about as long as memory takes to answer

template <typename AnyAllocator, typename AnyObserver>
RunResult Loop(const Schedule& schedule, AnyAllocator& allocator, AnyObserver& observer,
               const RunOptions& options) {
  RunResult result;
  const int64_t ooms_before = allocator.ooms();
  const RequestView requests = schedule.requests();
  const bool needs_requests = observer.needs().requests;
  Device* const device =
      options.device != nullptr && options.device->needs_requests() ? options.device : nullptr;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (options.intervention != nullptr) [[unlikely]] {
      const Intervention::Next next = options.intervention->BeforeRequest(i, allocator, observer);
      if (next == Intervention::Next::kStop) break;
      if (next == Intervention::Next::kSkip) continue;
    }
    if (device != nullptr) [[unlikely]] {
      device->OnRequest(i);
    }
    if (needs_requests) observer.OnRequest(i);
    if constexpr (std::is_same_v<AnyAllocator, CachingAllocator>) {
      if (i + kAhead < requests.size()) {
        allocator.Prefetch(requests.id(i + kAhead / 2), requests.id(i + kAhead));
      }
    }
    const Event request = requests[i];
    const bool is_usual = request.kind == EventKind::kAlloc || request.kind == EventKind::kFree;
    const absl::Status status =
        is_usual ? ApplyTo(request, allocator, observer)
                 : ApplyOther(request, schedule.trace().strings, options, allocator, observer);
    if (!status.ok()) [[unlikely]] {
      Note(i, status, result);
    }
    if (options.check_invariants) [[unlikely]] {
      allocator.CheckInvariants();
    }
  }
  result.ooms = static_cast<uint64_t>(allocator.ooms() - ooms_before);
  return result;
}

}  // namespace run_internal

template <typename Known>
requires std::is_final_v<Known> RunResult Run(const Schedule& schedule, CachingAllocator& allocator,
                                              Known& observer, const RunOptions& options) {
  return run_internal::Loop(schedule, allocator, observer, options);
}

}  // namespace memreplay

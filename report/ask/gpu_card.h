// Interfaces of a GPU for the replay on one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/report.pb.h"
#include "sim/confirm/device_run.h"
#include "sim/model/device.h"
#include "trace/value/units.h"

namespace memreplay {

// How a session on a GPU behaves.
struct GpuSessionOptions {
  std::optional<Bytes> capacity;
  bool by_ballast = false;  // take the rest of the memory, so that the driver refuses
  bool explicit_completion = false;
  bool verify = false;  // fill and check every block
  bool async = false;   // the driver's pool is the allocator
};

// One run's share of the GPU. The destructor releases everything.
class GpuSession {
 public:
  virtual ~GpuSession() = default;

  virtual Device& device() = 0;
  // Returns what RunOnDevice() needs to know about a real GPU, including the allocator of the
  // driver's pool, which it moves out.
  virtual RunWatch Watch() = 0;
  virtual Bytes ballast() const = 0;
  // Returns the driver's first error other than a refusal.
  virtual absl::Status status() const = 0;
  // Adds what verification found; adds nothing if it was not requested.
  virtual void AddVerification(std::optional<proto::GpuVerification>* counts,
                               std::vector<std::string>* faults) const = 0;
  // Releases everything. Returns the first error of doing so.
  virtual absl::Status Close() = 0;
};

// A GPU of this machine, for sessions that replay on it. The binary has one only if it was built
// with CUDA.
class GpuCard {
 public:
  virtual ~GpuCard() = default;

  // Returns name, driver, index and memory; the free memory is that of now.
  virtual proto::GpuCard Describe() = 0;
  // Starts a session; there may be one at a time. Errors: the capacity is not free; no memory
  // pools; the kernels cannot be loaded.
  virtual absl::StatusOr<std::unique_ptr<GpuSession>> Start(const GpuSessionOptions& options) = 0;
  // Calls every function that a sweep counts, with several sizes; TakeTimes() returns their times.
  // See cuda/driver_costs.h.
  virtual absl::Status MeasureCosts() = 0;
  // Returns the driver calls since the last TakeTimes(), by call and size.
  virtual std::vector<proto::GpuTime> TakeTimes() = 0;
};

}  // namespace memreplay

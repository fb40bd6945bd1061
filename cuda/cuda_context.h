// One GPU, opened: what it is, its streams, and the one way to call its driver.
#ifndef MEMREPLAY_CUDA_CUDA_CONTEXT_H_
#define MEMREPLAY_CUDA_CUDA_CONTEXT_H_

#include <cuda.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuda/cuda_driver.h"
#include "cuda/driver_call_log.h"
#include "trace/value/units.h"

namespace memreplay {

// A GPU as the driver describes it.
struct CudaCard {
  int ordinal = 0;
  std::string name;  // "NVIDIA H100 PCIe"
  Bytes total;       // cudaDeviceProp::totalGlobalMem
  int major = 0;     // compute capability
  int minor = 0;
  int multiprocessors = 0;
  bool has_memory_pools = false;  // cuMemAllocAsync
  Bytes granularity;              // of cuMemCreate
};

// The primary context of a GPU, as PyTorch uses it; current on the thread that
// made this object, which must be the one that uses it. Everything made from it
// must be gone before it.
class CudaContext {
 public:
  // Error: no such device (the message names those there are), or one without
  // virtual memory management, or with pages that do not divide 2 MiB.
  static absl::StatusOr<std::unique_ptr<CudaContext>> Create(const CudaDriver& driver, int ordinal);
  ~CudaContext();
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  const CudaDriver& driver() const { return driver_; }
  const CudaEntryPoints& api() const { return driver_.api(); }
  const CudaCard& card() const { return card_; }
  CUdevice device() const { return device_; }

  // Returns the free bytes of the GPU as the driver says, whatever took the rest; 0 if it fails.
  Bytes FreeMemory();
  // The stream that stands for a stream of the trace; made at its first use.
  // They do not wait for the legacy default stream. Null if the driver fails.
  CUstream Stream(uint32_t index);

  // Calls a function of the driver and notes in log() how long it took.
  template <typename Function, typename... Args>
  CUresult Call(DriverCall call, Bytes bytes, Function function, Args... args) {
    const auto start = std::chrono::steady_clock::now();
    const CUresult result = function(args...);
    const std::chrono::nanoseconds taken = std::chrono::steady_clock::now() - start;
    log_.Add(call, bytes, taken.count(), result == CUDA_SUCCESS);
    return result;
  }
  // True for CUDA_SUCCESS; else remembers the error in status().
  bool Succeeded(CUresult result, std::string_view call, std::string_view detail = "");
  bool Succeeded(CUresult result, DriverCall call, std::string_view detail = "") {
    return Succeeded(result, DriverCallName(call), detail);
  }

  // The first error of the driver other than an out of memory that was an answer.
  // After one, devices and allocators on this context grant nothing any more.
  const absl::Status& status() const { return status_; }
  const DriverCallLog& log() const { return log_; }
  DriverCallLog& log() { return log_; }

 private:
  CudaContext(const CudaDriver& driver, CUdevice device) : driver_(driver), device_(device) {}

  const CudaDriver& driver_;
  const CUdevice device_;
  bool retained_ = false;
  CudaCard card_;
  std::vector<CUstream> streams_;  // by index; null: not yet made
  absl::Status status_;
  DriverCallLog log_;
};

// "of N bytes", "of N bytes at 0xA": for messages.
std::string OfBytes(Bytes size);
std::string OfBytesAt(Bytes size, Address address);

}  // namespace memreplay

#endif  // MEMREPLAY_CUDA_CUDA_CONTEXT_H_

// An open GPU: its properties, its streams and timed calls of its driver, counted by kind and size.
#pragma once

#include <cuda.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuda/cuda_driver.h"
#include "trace/value/units.h"

namespace memreplay {

// The calls made during a replay, as enumerator and CUDA's name.
#define MEMREPLAY_DRIVER_CALLS(X)            \
  X(kMemAlloc, cuMemAlloc)                   \
  X(kMemFree, cuMemFree)                     \
  X(kAddressReserve, cuMemAddressReserve)    \
  X(kAddressFree, cuMemAddressFree)          \
  X(kCreate, cuMemCreate)                    \
  X(kMap, cuMemMap)                          \
  X(kSetAccess, cuMemSetAccess)              \
  X(kUnmap, cuMemUnmap)                      \
  X(kRelease, cuMemRelease)                  \
  X(kGetInfo, cuMemGetInfo)                  \
  X(kStreamCreate, cuStreamCreate)           \
  X(kContextSynchronize, cuCtxSynchronize)   \
  X(kStreamSynchronize, cuStreamSynchronize) \
  X(kStreamWaitEvent, cuStreamWaitEvent)     \
  X(kEventCreate, cuEventCreate)             \
  X(kEventRecord, cuEventRecord)             \
  X(kEventSynchronize, cuEventSynchronize)   \
  X(kMemAllocAsync, cuMemAllocAsync)         \
  X(kMemFreeAsync, cuMemFreeAsync)           \
  X(kPoolTrim, cuMemPoolTrimTo)              \
  X(kPoolAttribute, cuMemPoolGetAttribute)   \
  X(kLaunchKernel, cuLaunchKernel)

enum class DriverCall : uint8_t {
#define MEMREPLAY_DECLARE(kind, name) kind,
  MEMREPLAY_DRIVER_CALLS(MEMREPLAY_DECLARE)
#undef MEMREPLAY_DECLARE
};

// Returns CUDA's name of a call, such as "cuMemAlloc".
std::string_view DriverCallName(DriverCall call);

// The number of calls and how long they took.
struct DriverCallTimes {
  uint64_t calls = 0;
  uint64_t refused = 0;  // calls that returned an error, including out of memory
  int64_t total_ns = 0;
  int64_t min_ns = 0;
  int64_t max_ns = 0;
  std::vector<int64_t> sample;  // nanoseconds of the first kSample calls
  static constexpr size_t kSample = 512;

  // Returns the median of the sample, the lower of two, and 0 without calls. O(sample).
  int64_t median_ns() const;
};

// Counts and times driver calls.
class DriverCallLog {
 public:
  // Calls by kind and size; the size is 0 for calls that have none.
  using Rows = std::map<std::pair<DriverCall, Bytes>, DriverCallTimes>;

  void Add(DriverCall call, Bytes bytes, int64_t nanoseconds, bool succeeded);
  const Rows& rows() const { return rows_; }
  // Returns the sum of all sizes of one call, without a sample.
  DriverCallTimes Total(DriverCall call) const;
  void Clear() { rows_.clear(); }

 private:
  Rows rows_;
};

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

// The primary context of a GPU, as PyTorch uses it. It is current on the thread that created this
// object, and only that thread may use it. Everything created from it must be destroyed first.
class CudaContext {
 public:
  // Opens device `ordinal`. Errors: there is no such device (the message names those that exist),
  // it has no virtual memory management, or its page size does not divide 2 MiB.
  static absl::StatusOr<std::unique_ptr<CudaContext>> Create(const CudaDriver& driver, int ordinal);
  ~CudaContext();
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  const CudaDriver& driver() const { return driver_; }
  const CudaEntryPoints& api() const { return driver_.api(); }
  const CudaCard& card() const { return card_; }
  CUdevice device() const { return device_; }

  // Returns the free bytes of the GPU, as the driver reports them; 0 if the call fails.
  Bytes FreeMemory();
  // Returns the stream that stands for a stream of the trace, and creates it at its first use.
  // Streams do not wait for the legacy default stream. Returns null if the driver fails.
  CUstream Stream(uint32_t index);

  // Calls a driver function and adds its time to log().
  template <typename Function, typename... Args>
  CUresult Call(DriverCall call, Bytes bytes, Function function, Args... args) {
    const auto start = std::chrono::steady_clock::now();
    const CUresult result = function(args...);
    const std::chrono::nanoseconds taken = std::chrono::steady_clock::now() - start;
    log_.Add(call, bytes, taken.count(), result == CUDA_SUCCESS);
    return result;
  }
  // Does the same and returns whether the function succeeded; see Succeeded().
  template <typename Function, typename... Args>
  bool Do(DriverCall call, Bytes bytes, std::string_view detail, Function function, Args... args) {
    return Succeeded(Call(call, bytes, function, args...), DriverCallName(call), detail);
  }
  // Returns true for CUDA_SUCCESS; otherwise keeps the first error for status().
  bool Succeeded(CUresult result, std::string_view call, std::string_view detail = "");
  bool Succeeded(CUresult result, DriverCall call, std::string_view detail = "") {
    return Succeeded(result, DriverCallName(call), detail);
  }

  // Returns the first driver error, not counting an out of memory that is a valid answer. After an
  // error, devices and allocators on this context grant nothing more.
  const absl::Status& status() const { return status_; }
  const DriverCallLog& log() const { return log_; }
  DriverCallLog& log() { return log_; }

 private:
  CudaContext(const CudaDriver& driver, CUdevice device) : driver_(driver), device_(device) {}

  const CudaDriver& driver_;
  const CUdevice device_;
  bool retained_ = false;
  CudaCard card_;
  std::vector<CUstream> streams_;  // by index; null: not created yet
  absl::Status status_;
  DriverCallLog log_;
};

// Return "of N bytes" and "of N bytes at 0xA", for messages.
std::string OfBytes(Bytes size);
std::string OfBytesAt(Bytes size, Address address);

// Unused memory of the GPU: pages without addresses, held so that others do not get them.
class HeldPages {
 public:
  // `context` must outlive it.
  explicit HeldPages(CudaContext& context) : context_(context) {}
  ~HeldPages();
  HeldPages(const HeldPages&) = delete;
  HeldPages& operator=(const HeldPages&) = delete;

  // Takes or releases memory until `size`, rounded up to whole pages, is held, or as much as the
  // GPU has. O(log size) calls if free memory is not scattered.
  void SetSize(Bytes size);
  // Takes memory until at most `free` bytes (less than a page below it) are free on the GPU.
  void LeaveFree(Bytes free);
  // Releases all pages; those that the driver fails to release stay held.
  void ReleaseAll();

  Bytes size() const { return size_; }

 private:
  struct Piece {
    CUmemGenericAllocationHandle handle;
    Bytes size;
  };
  // Returns false if there is no piece of that size.
  bool Take(Bytes size);
  bool Give();  // releases the piece taken last

  CudaContext& context_;
  std::vector<Piece> pieces_;
  Bytes size_;
};

// Returns the page properties that memreplay uses for every creation.
CUmemAllocationProp PageProperties(const CudaContext& context);

}  // namespace memreplay

// The CUDA driver, opened on demand: memreplay is not linked with libcuda and starts on machines
// without it. It does not use the CUDA runtime (libcudart), whose cudaMalloc and cudaFree are
// cuMemAlloc and cuMemFree.
#pragma once

#include <cuda.h>

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Every driver function that memreplay calls. cuda.h redirects some of the names to a later
// revision (cuMemAlloc is cuMemAlloc_v2) here, in callers and in the library alike.
#define MEMREPLAY_CUDA_ENTRY_POINTS(X) \
  X(cuInit)                            \
  X(cuDriverGetVersion)                \
  X(cuGetErrorName)                    \
  X(cuGetErrorString)                  \
  X(cuDeviceGetCount)                  \
  X(cuDeviceGet)                       \
  X(cuDeviceGetName)                   \
  X(cuDeviceTotalMem)                  \
  X(cuDeviceGetAttribute)              \
  X(cuDevicePrimaryCtxRetain)          \
  X(cuDevicePrimaryCtxRelease)         \
  X(cuCtxSetCurrent)                   \
  X(cuCtxSynchronize)                  \
  X(cuMemGetInfo)                      \
  X(cuMemAlloc)                        \
  X(cuMemFree)                         \
  X(cuMemGetAllocationGranularity)     \
  X(cuMemAddressReserve)               \
  X(cuMemAddressFree)                  \
  X(cuMemCreate)                       \
  X(cuMemRelease)                      \
  X(cuMemMap)                          \
  X(cuMemUnmap)                        \
  X(cuMemSetAccess)                    \
  X(cuStreamCreate)                    \
  X(cuStreamDestroy)                   \
  X(cuStreamSynchronize)               \
  X(cuStreamWaitEvent)                 \
  X(cuEventCreate)                     \
  X(cuEventRecord)                     \
  X(cuEventSynchronize)                \
  X(cuEventDestroy)                    \
  X(cuDeviceGetDefaultMemPool)         \
  X(cuMemPoolGetAttribute)             \
  X(cuMemPoolSetAttribute)             \
  X(cuMemPoolTrimTo)                   \
  X(cuMemAllocAsync)                   \
  X(cuMemFreeAsync)                    \
  X(cuModuleLoadData)                  \
  X(cuModuleUnload)                    \
  X(cuModuleGetFunction)               \
  X(cuLaunchKernel)                    \
  X(cuMemHostAlloc)                    \
  X(cuMemHostGetDevicePointer)         \
  X(cuMemFreeHost)                     \
  X(cuMemcpyDtoH)

namespace memreplay {

// The functions of libcuda.so.1 that memreplay calls.
struct CudaEntryPoints {
#define MEMREPLAY_DECLARE(name) decltype(&::name) name = nullptr;
  MEMREPLAY_CUDA_ENTRY_POINTS(MEMREPLAY_DECLARE)
#undef MEMREPLAY_DECLARE
};

// The driver's library, loaded and initialised.
class CudaDriver {
 public:
  // The name under which the loader finds the driver's library.
  static constexpr std::string_view kLibrary = "libcuda.so.1";

  // Opens `library` (a name for the loader, or a path), finds every entry point and initialises the
  // driver. Errors: NotFound if there is no such library, Unimplemented if it lacks a function (the
  // driver is older than CUDA 11.2, which has all of them), FailedPrecondition if it finds no
  // device. The library stays loaded until the process ends, since unloading a driver is
  // unreliable.
  static absl::StatusOr<std::unique_ptr<CudaDriver>> Open(std::string_view library = kLibrary);

  const CudaEntryPoints& api() const { return api_; }
  const std::string& library() const { return library_; }
  // The version as cuDriverGetVersion reports it: 13000 is "13.0".
  int version() const { return version_; }
  std::string VersionText() const;
  int device_count() const { return device_count_; }

  // Returns "CALL DETAIL: CUDA_ERROR_NAME (the driver's description)", as ResourceExhausted for out
  // of memory and Internal for all else. `detail` may be empty; `result` must not be CUDA_SUCCESS.
  absl::Status Error(CUresult result, std::string_view call, std::string_view detail) const;

 private:
  CudaDriver() = default;

  std::string library_;
  CudaEntryPoints api_;
  int version_ = 0;
  int device_count_ = 0;
};

}  // namespace memreplay

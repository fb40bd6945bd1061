#include "cuda/cuda_driver.h"

#include <dlfcn.h>

#include <utility>

#include "trace/value/strings.h"

namespace memreplay {
namespace {

// Expands to the name that the library exports: `name` after cuda.h's renaming.
#define MEMREPLAY_EXPORTED(name) #name
#define MEMREPLAY_EXPORTED_NAME(name) MEMREPLAY_EXPORTED(name)

std::string_view LoaderMessage() {
  const char* message = dlerror();
  return message == nullptr ? "no reason given" : message;
}

template <typename Function>
absl::Status Find(void* handle, std::string_view library, const char* symbol, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(handle, symbol));
  if (*function != nullptr) return absl::OkStatus();
  return absl::UnimplementedError(StrCat("CUDA driver ", library, ": it lacks the function ",
                                         symbol, "; a driver for CUDA 11.2 or newer is required (",
                                         LoaderMessage(), ")"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaDriver>> CudaDriver::Open(std::string_view library) {
  std::unique_ptr<CudaDriver> driver(new CudaDriver);
  driver->library_ = std::string(library);
  void* handle = dlopen(driver->library_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return absl::NotFoundError(StrCat("no CUDA driver: the library ", library,
                                      " cannot be opened; NVIDIA's driver installs it (",
                                      LoaderMessage(), ")"));
  }
  CudaEntryPoints& api = driver->api_;
#define MEMREPLAY_FIND(name)                                                                \
  if (absl::Status found = Find(handle, library, MEMREPLAY_EXPORTED_NAME(name), &api.name); \
      !found.ok()) {                                                                        \
    return found;                                                                           \
  }
  MEMREPLAY_CUDA_ENTRY_POINTS(MEMREPLAY_FIND)
#undef MEMREPLAY_FIND

  const auto failed = [&](CUresult result, std::string_view call) {
    const absl::Status error = driver->Error(result, call, "");
    return absl::FailedPreconditionError(
        StrCat("CUDA driver ", library, ": ", ToStd(error.message())));
  };
  if (const CUresult result = api.cuInit(0); result != CUDA_SUCCESS) {
    if (result == CUDA_ERROR_NO_DEVICE) {
      return absl::FailedPreconditionError(
          StrCat("CUDA driver ", library, ": it is installed, but finds no GPU"));
    }
    return failed(result, "cuInit");
  }
  if (const CUresult result = api.cuDriverGetVersion(&driver->version_); result != CUDA_SUCCESS) {
    return failed(result, "cuDriverGetVersion");
  }
  if (const CUresult result = api.cuDeviceGetCount(&driver->device_count_);
      result != CUDA_SUCCESS) {
    return failed(result, "cuDeviceGetCount");
  }
  if (driver->device_count_ == 0) {
    return absl::FailedPreconditionError(
        StrCat("CUDA driver ", library, ": it is installed, but finds no GPU"));
  }
  return driver;
}

std::string CudaDriver::VersionText() const {
  return StrCat(version_ / 1000, ".", version_ % 1000 / 10);
}

absl::Status CudaDriver::Error(CUresult result, std::string_view call,
                               std::string_view detail) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (api_.cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) name = "unknown error";
  if (api_.cuGetErrorString(result, &text) != CUDA_SUCCESS || text == nullptr) {
    text = "no description";
  }
  std::string message = StrCat(call, detail.empty() ? "" : " ", detail, ": ", name, " (", text,
                               "; code ", static_cast<int>(result), ")");
  if (result == CUDA_ERROR_OUT_OF_MEMORY) return absl::ResourceExhaustedError(message);
  return absl::InternalError(message);
}

}  // namespace memreplay

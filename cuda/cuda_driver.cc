#include "cuda/cuda_driver.h"

#include <dlfcn.h>

#include "trace/value/status_macros.h"
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
#define MEMREPLAY_FIND(name) \
  RETURN_IF_ERROR(Find(handle, library, MEMREPLAY_EXPORTED_NAME(name), &api.name));
  MEMREPLAY_CUDA_ENTRY_POINTS(MEMREPLAY_FIND)
#undef MEMREPLAY_FIND

  const auto failed = [&](std::string_view why) {
    return absl::FailedPreconditionError(StrCat("CUDA driver ", library, ": ", why));
  };
  const auto check = [&](CUresult result, std::string_view call) {
    return result == CUDA_SUCCESS ? absl::OkStatus()
                                  : failed(ToStd(driver->Error(result, call, "").message()));
  };
  const CUresult started = api.cuInit(0);
  if (started != CUDA_ERROR_NO_DEVICE) {
    RETURN_IF_ERROR(check(started, "cuInit"));
    RETURN_IF_ERROR(check(api.cuDriverGetVersion(&driver->version_), "cuDriverGetVersion"));
    RETURN_IF_ERROR(check(api.cuDeviceGetCount(&driver->device_count_), "cuDeviceGetCount"));
  }
  if (driver->device_count_ == 0) return failed("it is installed, but finds no GPU");
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

// A fake libcuda.so.1: the state of the device, its controls, and the driver functions for virtual
// memory. Whatever else PyTorch asks the driver for exists and answers "not supported".
#include <cstddef>
#include <cstdint>
#include <memory>

#include "control.h"
#include "device.h"

namespace memreplay::fake {

Device& device() {
  static Device* instance =
      new Device;  // never destroyed: destructors of other libraries may still free memory
  return *instance;
}

}  // namespace memreplay::fake

using memreplay::fake::device;

namespace {

constexpr int kSuccess = 0;
constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;
constexpr int kNotSupported = 801;
constexpr int kAttributeVirtualMemory = 102;
constexpr int kAttributePosixHandles = 103;
constexpr int kHandleTypeFabric = 8;

struct AllocationProperties {  // the head of CUmemAllocationProp
  int type;
  int requested_handle_types;
};

}  // namespace

extern "C" {

void fake_cuda_reset(std::uint64_t total) {
  auto& d = device();
  d.memory = memreplay::fake::Memory(total);
  d.explicit_completion = false;
  d.capturing = false;
  d.sequence = 0;
  d.done.clear();
}
void fake_cuda_explicit(int on) { device().explicit_completion = on != 0; }
void fake_cuda_endless(int on) { device().memory.endless(on != 0); }
void fake_cuda_complete(std::uint64_t stream) { device().finish(stream, device().sequence); }
void fake_cuda_fail_next(std::uint64_t n) { device().memory.fail_next(n); }
void fake_cuda_external(std::int64_t delta) { device().memory.external(delta); }
void fake_cuda_capture(int on) { device().capturing = on != 0; }
void fake_cuda_info(std::uint64_t* free_bytes, std::uint64_t* total) {
  *free_bytes = device().memory.free_bytes();
  *total = device().memory.total();
}

int cuInit(unsigned) { return kSuccess; }
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
int cuDeviceGet(int* out, int ordinal) {
  *out = ordinal;
  return kSuccess;
}
int cuDeviceGetCount(int* count) {
  *count = 1;
  return kSuccess;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == kAttributeVirtualMemory || attribute == kAttributePosixHandles ? 1 : 0;
  return kSuccess;
}
int cuDevicePrimaryCtxGetState(int, unsigned* flags, int* active) {
  *flags = 0;
  *active = 1;
  return kSuccess;
}
int cuGetErrorString(int error, const char** text) {
  *text = error == kOutOfMemory ? "out of memory" : "fake driver error";
  return kSuccess;
}
int cuGetErrorName(int, const char** text) {
  *text = "FAKE_DRIVER_ERROR";
  return kSuccess;
}

int cuMemGetAllocationGranularity(std::size_t* granularity, const AllocationProperties*, int) {
  *granularity = memreplay::fake::kUnit;
  return kSuccess;
}
int cuMemAddressReserve(unsigned long long* address, std::size_t size, std::size_t,
                        unsigned long long, unsigned long long) {
  auto& d = device();
  std::lock_guard lock(d.mutex);
  *address = d.memory.reserve(size);
  return *address == 0 ? kOutOfMemory : kSuccess;
}
int cuMemAddressFree(unsigned long long address, std::size_t) {
  auto& d = device();
  std::lock_guard lock(d.mutex);
  return d.memory.unreserve(address) ? kSuccess : kInvalidValue;
}
int cuMemCreate(unsigned long long* handle, std::size_t size,
                const AllocationProperties* properties, unsigned long long) {
  if (properties != nullptr && (properties->requested_handle_types & kHandleTypeFabric) != 0)
    return kNotSupported;
  auto& d = device();
  std::lock_guard lock(d.mutex);
  *handle = d.memory.create_page(size);
  return *handle == 0 ? kOutOfMemory : kSuccess;
}
int cuMemRelease(unsigned long long handle) {
  auto& d = device();
  std::lock_guard lock(d.mutex);
  return d.memory.release_page(handle) ? kSuccess : kInvalidValue;
}
int cuMemMap(unsigned long long, std::size_t, std::size_t, unsigned long long, unsigned long long) {
  return kSuccess;
}
int cuMemUnmap(unsigned long long, std::size_t) { return kSuccess; }
int cuMemSetAccess(unsigned long long, std::size_t, const void*, std::size_t) { return kSuccess; }
int cuMemGetAddressRange(unsigned long long* base, std::size_t* size, unsigned long long address) {
  *base = address;
  *size = device().memory.size_of(address);
  return kSuccess;
}
int cuMemGetAddressRange_v2(unsigned long long* base, std::size_t* size,
                            unsigned long long address) {
  return cuMemGetAddressRange(base, size, address);
}

#define NOT_SUPPORTED(name) \
  int name() { return kNotSupported; }
NOT_SUPPORTED(cuCtxFromGreenCtx)
NOT_SUPPORTED(cuCtxGetCurrent)
NOT_SUPPORTED(cuCtxPopCurrent)
NOT_SUPPORTED(cuCtxPopCurrent_v2)
NOT_SUPPORTED(cuCtxPushCurrent)
NOT_SUPPORTED(cuCtxPushCurrent_v2)
NOT_SUPPORTED(cuCtxSetCurrent)
NOT_SUPPORTED(cuDevResourceGenerateDesc)
NOT_SUPPORTED(cuDevSmResourceSplitByCount)
NOT_SUPPORTED(cuDeviceGetDevResource)
NOT_SUPPORTED(cuGreenCtxCreate)
NOT_SUPPORTED(cuGreenCtxDestroy)
NOT_SUPPORTED(cuGreenCtxStreamCreate)
NOT_SUPPORTED(cuLogsRegisterCallback)
NOT_SUPPORTED(cuLogsUnregisterCallback)
NOT_SUPPORTED(cuMemExportToShareableHandle)
NOT_SUPPORTED(cuMemGetAllocationPropertiesFromHandle)
NOT_SUPPORTED(cuMemImportFromShareableHandle)
NOT_SUPPORTED(cuMemRetainAllocationHandle)
NOT_SUPPORTED(cuMemsetD32Async)
NOT_SUPPORTED(cuMulticastAddDevice)
NOT_SUPPORTED(cuMulticastBindMem)
NOT_SUPPORTED(cuMulticastCreate)
NOT_SUPPORTED(cuMulticastUnbind)
NOT_SUPPORTED(cuStreamWriteValue32)
NOT_SUPPORTED(cuStreamWriteValue32_v2)
#undef NOT_SUPPORTED

}  // extern "C"

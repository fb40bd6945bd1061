// A fake CUDA runtime. It is linked under the soname and symbol version that the allocator's
// library wants (libcudart.so.11.0, .12 or .13) and stands on the fake driver.
//
// Streams: the n-th stream created with one priority (n from 1) has the handle n, so a program's
// stream numbers are the handles that the allocator sees, in the same order. Priorities other than
// 0 get handles from 1000 * |priority| up.
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "control.h"
#include "device.h"

using memreplay::fake::device;
using memreplay::fake::Event;

namespace {

enum : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kMemoryAllocation = 2,
  kSymbolNotFound = 500,
  kNotReady = 600,
  kNotSupported = 801,
};
constexpr std::size_t kTotalGlobalMemOffset = 288;
constexpr std::size_t kPropertiesCleared = 600;  // no version's struct is smaller

thread_local int last_error = kSuccess;
thread_local int current_device = 0;

int result(int error) {
  if (error != kSuccess) last_error = error;
  return error;
}
std::uint64_t number(const void* handle) { return reinterpret_cast<std::uint64_t>(handle); }

int device_properties(void* properties) {
  std::memset(properties, 0, kPropertiesCleared);
  std::strcpy(static_cast<char*>(properties), "imaginary");
  const std::size_t total = device().memory.total();
  std::memcpy(static_cast<char*>(properties) + kTotalGlobalMemOffset, &total, sizeof total);
  return kSuccess;
}

int entry_point(const char* symbol, void** function, int* status) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  *function = driver == nullptr ? nullptr : dlsym(driver, symbol);
  if (status != nullptr) *status = *function == nullptr ? 1 : 0;
  return result(*function == nullptr ? kSymbolNotFound : kSuccess);
}

}  // namespace

extern "C" {

int cudaGetLastError() {
  const int error = last_error;
  last_error = kSuccess;
  return error;
}
int cudaPeekAtLastError() { return last_error; }
const char* cudaGetErrorString(int error) {
  switch (error) {
    case kSuccess: return "no error";
    case kMemoryAllocation: return "out of memory";
    case kNotReady: return "device not ready";
    default: return "fake runtime error";
  }
}
const char* cudaGetErrorName(int error) {
  switch (error) {
    case kSuccess: return "cudaSuccess";
    case kMemoryAllocation: return "cudaErrorMemoryAllocation";
    case kNotReady: return "cudaErrorNotReady";
    default: return "cudaErrorUnknown";
  }
}

// Device
int cudaGetDevice(int* out) {
  *out = current_device;
  return kSuccess;
}
int cudaSetDevice(int ordinal) {
  if (ordinal != 0) return result(101);
  current_device = ordinal;
  return kSuccess;
}
int cudaGetDeviceCount(int* count) {
  *count = 1;
  return kSuccess;
}
int cudaGetDeviceProperties(void* properties, int) { return device_properties(properties); }
int cudaGetDeviceProperties_v2(void* properties, int) { return device_properties(properties); }
int cudaDeviceSynchronize() {
  auto& d = device();
  std::lock_guard lock(d.mutex);
  for (auto& [stream, last] : d.done) last = d.sequence;
  return kSuccess;
}
int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -1;
  return kSuccess;
}
int cudaDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
int cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
int cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return kSuccess;
}
int cudaDeviceEnablePeerAccess(int, unsigned) { return kSuccess; }
int cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long, int* status) {
  return entry_point(symbol, function, status);
}
int cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned,
                                     unsigned long long, int* status) {
  return entry_point(symbol, function, status);
}

// Memory
int cudaMalloc(void** out, std::size_t bytes) {
  auto& d = device();
  std::lock_guard lock(d.mutex);
  *out = reinterpret_cast<void*>(d.memory.allocate(bytes));
  return result(*out == nullptr ? kMemoryAllocation : kSuccess);
}
int cudaFree(void* address) {
  if (address == nullptr) return kSuccess;
  auto& d = device();
  std::lock_guard lock(d.mutex);
  return result(d.memory.free(number(address)) ? kSuccess : kInvalidValue);
}
int cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total) {
  auto& d = device();
  std::lock_guard lock(d.mutex);
  *free_bytes = d.memory.free_bytes();
  *total = d.memory.total();
  return kSuccess;
}
int cudaMemcpy(void*, const void*, std::size_t, int) { return kSuccess; }
int cudaMemcpyAsync(void*, const void*, std::size_t, int, void*) { return kSuccess; }
int cudaMemcpyPeerAsync(void*, int, const void*, int, std::size_t, void*) { return kSuccess; }

// Streams
int cudaStreamCreateWithPriority(void** out, unsigned, int priority) {
  auto& d = device();
  std::lock_guard lock(d.mutex);
  const std::uint64_t offset =
      static_cast<std::uint64_t>(priority < 0 ? -priority : priority) * 1000;
  *out = reinterpret_cast<void*>(++d.streams_of_priority[priority] + offset);
  return kSuccess;
}
int cudaStreamDestroy(void*) { return kSuccess; }
int cudaStreamGetPriority(void*, int* priority) {
  *priority = 0;
  return kSuccess;
}
int cudaStreamQuery(void*) { return kSuccess; }
int cudaStreamSynchronize(void* stream) {
  auto& d = device();
  std::lock_guard lock(d.mutex);
  d.finish(number(stream), d.sequence);
  return kSuccess;
}
int cudaStreamWaitEvent(void*, void*, unsigned) { return kSuccess; }
int cudaStreamIsCapturing(void*, int* status) {
  *status = device().capturing ? 1 : 0;
  return kSuccess;
}
int cudaStreamGetCaptureInfo(void*, int* status, unsigned long long* id) {
  *status = device().capturing ? 1 : 0;
  if (id != nullptr) *id = 1;
  return kSuccess;
}
int cudaStreamGetCaptureInfo_v2(void* stream, int* status, unsigned long long* id) {
  return cudaStreamGetCaptureInfo(stream, status, id);
}
int cudaThreadExchangeStreamCaptureMode(int*) { return kSuccess; }

// Events
int cudaEventCreateWithFlags(void** out, unsigned) {
  *out = new Event;
  return kSuccess;
}
int cudaEventCreate(void** out) { return cudaEventCreateWithFlags(out, 0); }
int cudaEventDestroy(void* event) {
  delete static_cast<Event*>(event);
  return kSuccess;
}
int cudaEventRecord(void* event, void* stream) {
  auto& d = device();
  std::lock_guard lock(d.mutex);
  *static_cast<Event*>(event) = Event{number(stream), ++d.sequence};
  return kSuccess;
}
int cudaEventQuery(void* event) {
  auto& d = device();
  std::lock_guard lock(d.mutex);
  return result(d.complete(*static_cast<Event*>(event)) ? kSuccess : kNotReady);
}
int cudaEventSynchronize(void* event) {
  auto& d = device();
  std::lock_guard lock(d.mutex);
  const Event& e = *static_cast<Event*>(event);
  d.finish(e.stream, e.sequence);
  return kSuccess;
}
int cudaEventElapsedTime(float* milliseconds, void*, void*) {
  *milliseconds = 0;
  return kSuccess;
}

#define NOT_SUPPORTED(name) \
  int name() { return result(kNotSupported); }
NOT_SUPPORTED(cudaDeviceGetDefaultMemPool)
NOT_SUPPORTED(cudaDeviceGetGraphMemAttribute)
NOT_SUPPORTED(cudaDeviceSetGraphMemAttribute)
NOT_SUPPORTED(cudaFreeAsync)
NOT_SUPPORTED(cudaGraphAddEmptyNode)
NOT_SUPPORTED(cudaGraphNodeGetDependencies)
NOT_SUPPORTED(cudaGraphNodeGetType)
NOT_SUPPORTED(cudaIpcCloseMemHandle)
NOT_SUPPORTED(cudaIpcGetMemHandle)
NOT_SUPPORTED(cudaIpcOpenMemHandle)
NOT_SUPPORTED(cudaMallocAsync)
NOT_SUPPORTED(cudaMemPoolGetAttribute)
NOT_SUPPORTED(cudaMemPoolSetAccess)
NOT_SUPPORTED(cudaMemPoolSetAttribute)
NOT_SUPPORTED(cudaMemPoolTrimTo)
NOT_SUPPORTED(cudaStreamUpdateCaptureDependencies)
#undef NOT_SUPPORTED

}  // extern "C"

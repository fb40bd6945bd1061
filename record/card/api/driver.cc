// The CUDA driver: devices, contexts, and code that is loaded at run time.
#include <cstdio>
#include <cstring>
#include <string>

#include "record/card/api/attributes.h"
#include "record/card/api/occupancy.h"
#include "record/card/device/copies.h"
#include "record/card/device/cuda_errors.h"
#include "record/card/device/device.h"
#include "record/card/device/entry.h"

namespace memreplay::card {
namespace {

ENTRY(int, cuInit, unsigned) { return device().visible_count() == 0 ? kNoDevice : kSuccess; }
ENTRY(int, cuDriverGetVersion, int* version) {
  *version = versions().cuda;
  return kSuccess;
}
ENTRY(int, cuDeviceGet, int* out, int card) {
  if (no_such_card(card)) return kInvalidDevice;
  *out = card;
  return kSuccess;
}
ENTRY(int, cuDeviceGetCount, int* count) {
  *count = device().visible_count();
  return kSuccess;
}
ENTRY(int, cuDeviceGetName, char* name, int size, int card) {
  if (no_such_card(card)) return kInvalidDevice;
  std::snprintf(name, static_cast<std::size_t>(size), "%s", device().settings.card->title.c_str());
  return kSuccess;
}
ENTRY(int, cuDeviceTotalMem_v2, std::size_t* bytes, int card) {
  if (no_such_card(card)) return kInvalidDevice;
  *bytes = device().settings.capacity;
  return kSuccess;
}
ENTRY(int, cuDeviceGetAttribute, int* value, int attribute, int card) {
  if (no_such_card(card)) return kInvalidDevice;
  return AttributeOf(device().settings, attribute, value) ? kSuccess : kInvalidValue;
}
ENTRY(int, cuDeviceGetUuid, char* uuid, int card) {
  if (no_such_card(card)) return kInvalidDevice;
  FillUuid(card, uuid);
  return kSuccess;
}
ALSO(cuDeviceGetUuid_v2, cuDeviceGetUuid);
ENTRY(int, cuDeviceGetPCIBusId, char* text, int size, int card) {
  if (no_such_card(card)) return kInvalidDevice;
  std::snprintf(text, static_cast<std::size_t>(size), "0000:%02x:00.0", card + 1);
  return kSuccess;
}
ENTRY(int, cuDeviceComputeCapability, int* major, int* minor, int card) {
  if (no_such_card(card)) return kInvalidDevice;
  *major = device().settings.card->capability / 10;
  *minor = device().settings.card->capability % 10;
  return kSuccess;
}
ENTRY(int, cuDeviceCanAccessPeer, int* can, int card, int peer) {
  if (no_such_card(card) || no_such_card(peer)) return kInvalidDevice;
  *can = card != peer ? 1 : 0;
  return kSuccess;
}

// Contexts. Each card has one, which always exists.
ENTRY(int, cuDevicePrimaryCtxGetState, int, unsigned* flags, int* active) {
  *flags = 0;
  *active = 1;
  return kSuccess;
}
ENTRY(int, cuDevicePrimaryCtxRetain, std::uint64_t* context, int card) {
  if (no_such_card(card)) return kInvalidDevice;
  *context = ContextOf(card);
  return kSuccess;
}
ENTRY(int, cuDevicePrimaryCtxRelease_v2, int) { return kSuccess; }
ENTRY(int, cuCtxGetCurrent, std::uint64_t* context) {
  *context = ContextOf(current_card());
  return kSuccess;
}
ENTRY(int, cuCtxSetCurrent, std::uint64_t context) {
  if (context == 0) return kSuccess;
  const int card = CardOfContext(context);
  if (no_such_card(card)) return kInvalidValue;
  current_card() = card;
  return kSuccess;
}
ENTRY(int, cuCtxPushCurrent, std::uint64_t context) { return cuCtxSetCurrent(context); }
ALSO(cuCtxPushCurrent_v2, cuCtxPushCurrent);
ENTRY(int, cuCtxPopCurrent, MayBeNull<std::uint64_t> context) {
  if (context != nullptr) *context = ContextOf(current_card());
  return kSuccess;
}
ALSO(cuCtxPopCurrent_v2, cuCtxPopCurrent);
ENTRY(int, cuCtxGetDevice, int* card) {
  *card = current_card();
  return kSuccess;
}
ENTRY(int, cuCtxSynchronize, void) {
  Device& d = device();
  const std::lock_guard<std::mutex> lock(d.mutex);
  d.streams.synchronize_card(current_card(), d.now());
  return kSuccess;
}
ENTRY(int, cuCtxGetLimit, std::size_t* value, int) {
  *value = 0;
  return kSuccess;
}
ENTRY(int, cuCtxSetLimit, int, std::size_t) { return kSuccess; }
ENTRY(int, cuStreamGetCtx, void*, std::uint64_t* context) { return cuCtxGetCurrent(context); }
ENTRY(int, cuStreamSynchronize, void* stream) {
  Device& d = device();
  const std::lock_guard<std::mutex> lock(d.mutex);
  d.streams.synchronize(stream_key(stream), d.now());
  return kSuccess;
}

// Modules: code of Triton, NVRTC and others is accepted and never run. Handles are numbers.
std::atomic<std::uint64_t> next_handle{0x100000};
std::uint64_t new_handle() { return next_handle.fetch_add(16, std::memory_order_relaxed); }

ENTRY(int, cuModuleLoadData, std::uint64_t* module, const void*) {
  *module = new_handle();
  device().made(kModuleObject, __builtin_return_address(0), pointer(*module));
  return kSuccess;
}
ALSO(cuModuleLoadDataEx, cuModuleLoadData);
ALSO(cuModuleLoad, cuModuleLoadData);
ALSO(cuModuleLoadFatBinary, cuModuleLoadData);
ALSO(cuLibraryLoadData, cuModuleLoadData);
ALSO(cuLibraryLoadFromFile, cuModuleLoadData);
ALSO(cudaLibraryLoadData, cuModuleLoadData);
ALSO(cudaLibraryLoadFromFile, cuModuleLoadData);
ENTRY(int, cuModuleUnload, std::uint64_t module) {
  device().destroyed(kModuleObject, pointer(module));
  return kSuccess;
}
ALSO(cuLibraryUnload, cuModuleUnload);
ALSO(cudaLibraryUnload, cuModuleUnload);
ENTRY(int, cuModuleGetFunction, std::uint64_t* function, std::uint64_t, const char*) {
  *function = new_handle();
  device().made(kKernelObject, __builtin_return_address(0), pointer(*function));
  return kSuccess;
}
ALSO(cuLibraryGetKernel, cuModuleGetFunction);
ALSO(cudaLibraryGetKernel, cuModuleGetFunction);
ENTRY(int, cuKernelGetFunction, std::uint64_t* function, std::uint64_t kernel) {
  *function = kernel;
  return kSuccess;
}
ENTRY(int, cuModuleGetGlobal_v2, void*, void*, std::uint64_t, const char*) {
  return kSymbolNotFound;
}
ENTRY(int, cuLinkCreate_v2, unsigned, void*, void*, std::uint64_t* state) {
  *state = new_handle();
  return kSuccess;
}
ENTRY(int, cuLinkAddData_v2, void) { return kSuccess; }
ENTRY(int, cuLinkComplete, void*, const void** image, std::size_t* size) {
  static const char kImage[16] = {};
  *image = kImage;
  *size = sizeof kImage;
  return kSuccess;
}
ENTRY(int, cuLinkDestroy, void*) { return kSuccess; }

ENTRY(int, cuFuncGetAttribute, int* value, int attribute, void*) {
  enum { kThreads = 0, kRegisterCount = 4 };
  *value = attribute == kThreads ? 1024 : attribute == kRegisterCount ? kAssumedRegisters : 0;
  return kSuccess;
}
ENTRY(int, cuFuncSetAttribute, void*, int, int) { return kSuccess; }
ENTRY(int, cuFuncSetCacheConfig, void*, int) { return kSuccess; }
ENTRY(int, cuLaunchKernel, void*) {
  device().launch();
  return kSuccess;
}
ALSO(cuLaunchKernelEx, cuLaunchKernel);
ALSO(cuLaunchCooperativeKernel, cuLaunchKernel);
ENTRY(int, cuOccupancyMaxActiveClusters, int* clusters, void*, const void*) {
  Assume("8 clusters are assumed to run at once where the script asks");
  *clusters = 8;
  return kSuccess;
}
ENTRY(int, cuTensorMapEncodeTiled, char* map) {
  std::memset(map, 0, 128);
  return kSuccess;
}

ENTRY(int, cuMemcpyDtoHAsync_v2, void* to, const void* from, std::size_t size, void*) {
  return Copy(to, from, size) ? kSuccess : kInvalidValue;
}
ALSO(cuMemcpyHtoDAsync_v2, cuMemcpyDtoHAsync_v2);
ALSO(cuMemcpyDtoDAsync_v2, cuMemcpyDtoHAsync_v2);
ALSO(cuMemcpyDtoH_v2, cuMemcpyDtoHAsync_v2);
ALSO(cuMemcpyHtoD_v2, cuMemcpyDtoHAsync_v2);
ALSO(cuMemcpyAsync, cuMemcpyDtoHAsync_v2);
ENTRY(int, cuMemsetD8Async, void* to, unsigned char byte, std::size_t size, void*) {
  return Fill(to, byte, size) ? kSuccess : kInvalidValue;
}
ENTRY(int, cuMemsetD32Async, void* to, unsigned value, std::size_t count, void*) {
  // A pattern of equal bytes is a fill; other patterns are written one by one while they are small.
  const unsigned byte = value & 0xff;
  if (value == byte * 0x01010101U || count * 4 > device().settings.copy_limit) {
    return Fill(to, static_cast<int>(byte), count * 4) ? kSuccess : kInvalidValue;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (!Copy(static_cast<char*>(to) + i * 4, &value, 4)) return kInvalidValue;
  }
  return kSuccess;
}
ENTRY(int, cuStreamWriteValue32, void*, void* to, unsigned value, unsigned) {
  return Copy(to, &value, sizeof value) ? kSuccess : kInvalidValue;
}
ALSO(cuStreamWriteValue32_v2, cuStreamWriteValue32);
ENTRY(int, cuStreamWaitValue32, void*, std::uint64_t, unsigned, unsigned) { return kSuccess; }
ALSO(cuStreamWaitValue32_v2, cuStreamWaitValue32);

// Refuses NVIDIA's private interface to the driver, which is not published. CUDA's runtime needs it
// where it is part of another library (CuPy, RMM).
ENTRY(int, cuGetExportTable, const void** table, const void*) {
  *table = nullptr;
  return RefuseRuntimeOf(__builtin_return_address(0), kNotSupported);
}

// Looks up a requested entry point in the table; "_v2" and so on are what a header's macros would
// have chosen. A missing one is noted and answered as an old driver would.
void* entry_point(const char* name, const void* caller) {
  for (const char* suffix : {"_v3", "_v2", ""}) {
    if (void* function = FindEntry((std::string(name) + suffix).c_str())) return function;
  }
  // At its start, torch looks up functions that it may never call.
  if (void* function = FindExport(name)) return function;
  Refuse("libcuda.so.1", name, kSymbolNotFound, caller);
  return nullptr;
}
enum { kFound = 0, kNotFound = 1 };
int find_entry(const char* name, void** function, int* status, const void* caller) {
  *function = entry_point(name, caller);
  if (status != nullptr) *status = *function != nullptr ? kFound : kNotFound;
  return *function != nullptr ? kSuccess : kSymbolNotFound;
}
ENTRY(int, cudaGetDriverEntryPoint, const char* name, void** function, std::uint64_t,
      MayBeNull<int> status) {
  const int error = find_entry(name, function, status, __builtin_return_address(0));
  return error == kSuccess ? kSuccess : Failed(error);
}
ENTRY(int, cudaGetDriverEntryPointByVersion, const char* name, void** function, unsigned,
      std::uint64_t, MayBeNull<int> status) {
  const int error = find_entry(name, function, status, __builtin_return_address(0));
  return error == kSuccess ? kSuccess : Failed(error);
}
ENTRY(int, cuGetProcAddress, const char* name, void** function, int, std::uint64_t) {
  return find_entry(name, function, nullptr, __builtin_return_address(0));
}
ENTRY(int, cuGetProcAddress_v2, const char* name, void** function, int, std::uint64_t,
      MayBeNull<int> status) {
  return find_entry(name, function, status, __builtin_return_address(0));
}

}  // namespace
}  // namespace memreplay::card

// The CUDA driver: devices, contexts, and code that is loaded at run time.
#include <cstdio>
#include <cstring>
#include <string>

#include "record/card/api/attributes.h"
#include "record/card/device/copies.h"
#include "record/card/device/cuda_errors.h"
#include "record/card/device/device.h"
#include "record/card/device/entry.h"

namespace memreplay::card {
namespace {

ENTRY(int, cuInit, unsigned) { return TheDevice().VisibleCount() == 0 ? kNoDevice : kSuccess; }
DOES(cuDriverGetVersion, (int* version), *version = Versions().cuda)
ENTRY(int, cuDeviceGet, int* out, int card) {
  if (NoSuchCard(card)) return kInvalidDevice;
  *out = card;
  return kSuccess;
}
DOES(cuDeviceGetCount, (int* count), *count = TheDevice().VisibleCount())
ENTRY(int, cuDeviceGetName, char* name, int size, int card) {
  if (NoSuchCard(card)) return kInvalidDevice;
  std::snprintf(name, static_cast<size_t>(size), "%s", TheDevice().settings.card->title.c_str());
  return kSuccess;
}
ENTRY(int, cuDeviceTotalMem_v2, size_t* bytes, int card) {
  if (NoSuchCard(card)) return kInvalidDevice;
  *bytes = TheDevice().settings.capacity;
  return kSuccess;
}
ENTRY(int, cuDeviceGetAttribute, int* value, int attribute, int card) {
  if (NoSuchCard(card)) return kInvalidDevice;
  return AttributeOf(TheDevice().settings, attribute, value) ? kSuccess : kInvalidValue;
}
ENTRY(int, cuDeviceGetUuid, char* uuid, int card) {
  if (NoSuchCard(card)) return kInvalidDevice;
  FillUuid(card, uuid);
  return kSuccess;
}
ALSO(cuDeviceGetUuid_v2, cuDeviceGetUuid);
ENTRY(int, cuDeviceGetPCIBusId, char* text, int size, int card) {
  if (NoSuchCard(card)) return kInvalidDevice;
  std::snprintf(text, static_cast<size_t>(size), "0000:%02x:00.0", card + 1);
  return kSuccess;
}
ENTRY(int, cuDeviceComputeCapability, int* major, int* minor, int card) {
  if (NoSuchCard(card)) return kInvalidDevice;
  *major = TheDevice().settings.card->capability / 10;
  *minor = TheDevice().settings.card->capability % 10;
  return kSuccess;
}
ENTRY(int, cuDeviceCanAccessPeer, int* can, int card, int peer) {
  if (NoSuchCard(card) || NoSuchCard(peer)) return kInvalidDevice;
  *can = card != peer ? 1 : 0;
  return kSuccess;
}

// Contexts. Each card has one, which always exists.
ENTRY(int, cuDevicePrimaryCtxGetState, int, unsigned* flags, int* active) {
  *flags = 0;
  *active = 1;
  return kSuccess;
}
ENTRY(int, cuDevicePrimaryCtxRetain, uint64_t* context, int card) {
  if (NoSuchCard(card)) return kInvalidDevice;
  *context = ContextOf(card);
  return kSuccess;
}
ENTRY(int, cuDevicePrimaryCtxRelease_v2, int) { return kSuccess; }
DOES(cuCtxGetCurrent, (uint64_t * context), *context = ContextOf(CurrentCard()))
ENTRY(int, cuCtxSetCurrent, uint64_t context) {
  if (context == 0) return kSuccess;
  const int card = CardOfContext(context);
  if (NoSuchCard(card)) return kInvalidValue;
  CurrentCard() = card;
  return kSuccess;
}
ENTRY(int, cuCtxPushCurrent, uint64_t context) { return cuCtxSetCurrent(context); }
ALSO(cuCtxPushCurrent_v2, cuCtxPushCurrent);
ENTRY(int, cuCtxPopCurrent, MayBeNull<uint64_t> context) {
  if (context != nullptr) *context = ContextOf(CurrentCard());
  return kSuccess;
}
ALSO(cuCtxPopCurrent_v2, cuCtxPopCurrent);
DOES(cuCtxGetDevice, (int* card), *card = CurrentCard())
DOES_LOCKED(cuCtxSynchronize, (void), d.streams.SynchronizeCard(CurrentCard(), d.now()))
DOES(cuCtxGetLimit, (size_t * value, int), *value = 0)
ENTRY(int, cuCtxSetLimit, int, size_t) { return kSuccess; }
ENTRY(int, cuStreamGetCtx, void*, uint64_t* context) { return cuCtxGetCurrent(context); }
DOES_LOCKED(cuStreamSynchronize, (void* stream),
            d.streams.Synchronize(StreamKeyOf(stream), d.now()))

// Modules: code of Triton, NVRTC and others is accepted and never run. Handles are numbers.
std::atomic<uint64_t> next_handle{0x100000};
uint64_t NewHandle() { return next_handle.fetch_add(16, std::memory_order_relaxed); }

ENTRY(int, cuModuleLoadData, uint64_t* module, const void*) {
  *module = NewHandle();
  TheDevice().Made(kModuleObject, __builtin_return_address(0), Pointer(*module));
  return kSuccess;
}
ALSO(cuModuleLoadDataEx, cuModuleLoadData);
ALSO(cuModuleLoad, cuModuleLoadData);
ALSO(cuModuleLoadFatBinary, cuModuleLoadData);
ALSO(cuLibraryLoadData, cuModuleLoadData);
ALSO(cuLibraryLoadFromFile, cuModuleLoadData);
ALSO(cudaLibraryLoadData, cuModuleLoadData);
ALSO(cudaLibraryLoadFromFile, cuModuleLoadData);
DOES(cuModuleUnload, (uint64_t module), TheDevice().Destroyed(kModuleObject, Pointer(module)))
ALSO(cuLibraryUnload, cuModuleUnload);
ALSO(cudaLibraryUnload, cuModuleUnload);
ENTRY(int, cuModuleGetFunction, uint64_t* function, uint64_t, const char*) {
  *function = NewHandle();
  TheDevice().Made(kKernelObject, __builtin_return_address(0), Pointer(*function));
  return kSuccess;
}
ALSO(cuLibraryGetKernel, cuModuleGetFunction);
ALSO(cudaLibraryGetKernel, cuModuleGetFunction);
DOES(cuKernelGetFunction, (uint64_t * function, uint64_t kernel), *function = kernel)
ENTRY(int, cuModuleGetGlobal_v2, void*, void*, uint64_t, const char*) { return kSymbolNotFound; }
DOES(cuLinkCreate_v2, (unsigned, void*, void*, uint64_t* state), *state = NewHandle())
ENTRY(int, cuLinkAddData_v2, void) { return kSuccess; }
ENTRY(int, cuLinkComplete, void*, const void** image, size_t* size) {
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
DOES(cuLaunchKernel, (void*), TheDevice().Launch())
ALSO(cuLaunchKernelEx, cuLaunchKernel);
ALSO(cuLaunchCooperativeKernel, cuLaunchKernel);
ENTRY(int, cuOccupancyMaxActiveClusters, int* clusters, void*, const void*) {
  Assume("8 clusters are assumed to run at once where the script asks");
  *clusters = 8;
  return kSuccess;
}
DOES(cuTensorMapEncodeTiled, (char* map), std::memset(map, 0, 128))

ENTRY(int, cuMemcpyDtoHAsync_v2, void* to, const void* from, size_t size, void*) {
  return Copy(to, from, size) ? kSuccess : kInvalidValue;
}
ALSO(cuMemcpyHtoDAsync_v2, cuMemcpyDtoHAsync_v2);
ALSO(cuMemcpyDtoDAsync_v2, cuMemcpyDtoHAsync_v2);
ALSO(cuMemcpyDtoH_v2, cuMemcpyDtoHAsync_v2);
ALSO(cuMemcpyHtoD_v2, cuMemcpyDtoHAsync_v2);
ALSO(cuMemcpyAsync, cuMemcpyDtoHAsync_v2);
ENTRY(int, cuMemsetD8Async, void* to, unsigned char byte, size_t size, void*) {
  return Fill(to, byte, size) ? kSuccess : kInvalidValue;
}
ENTRY(int, cuMemsetD32Async, void* to, unsigned value, size_t count, void*) {
  // A pattern of equal bytes is a fill; other patterns are written one by one while they are small.
  const unsigned byte = value & 0xff;
  if (value == byte * 0x01010101U || count * 4 > TheDevice().settings.copy_limit) {
    return Fill(to, static_cast<int>(byte), count * 4) ? kSuccess : kInvalidValue;
  }
  for (size_t i = 0; i < count; ++i) {
    if (!Copy(static_cast<char*>(to) + i * 4, &value, 4)) return kInvalidValue;
  }
  return kSuccess;
}
ENTRY(int, cuStreamWriteValue32, void*, void* to, unsigned value, unsigned) {
  return Copy(to, &value, sizeof value) ? kSuccess : kInvalidValue;
}
ALSO(cuStreamWriteValue32_v2, cuStreamWriteValue32);
ENTRY(int, cuStreamWaitValue32, void*, uint64_t, unsigned, unsigned) { return kSuccess; }
ALSO(cuStreamWaitValue32_v2, cuStreamWaitValue32);

// Refuses NVIDIA's private interface to the driver, which is not published. CUDA's runtime needs it
// where it is part of another library (CuPy, RMM).
ENTRY(int, cuGetExportTable, const void** table, const void*) {
  *table = nullptr;
  return RefuseRuntimeOf(__builtin_return_address(0), kNotSupported);
}

// Looks up a requested entry point in the table; "_v2" and so on are what a header's macros would
// have chosen. A missing one is noted and answered as an old driver would.
void* EntryPoint(const char* name, const void* caller) {
  for (const char* suffix : {"_v3", "_v2", ""}) {
    if (void* function = FindEntry((std::string(name) + suffix).c_str())) return function;
  }
  // At its start, torch looks up functions that it may never call.
  if (void* function = FindExport(name)) return function;
  Refuse("libcuda.so.1", name, kSymbolNotFound, caller);
  return nullptr;
}
enum { kFound = 0, kNotFound = 1 };
int LookUp(const char* name, void** function, int* status, const void* caller) {
  *function = EntryPoint(name, caller);
  if (status != nullptr) *status = *function != nullptr ? kFound : kNotFound;
  return *function != nullptr ? kSuccess : kSymbolNotFound;
}
ENTRY(int, cudaGetDriverEntryPoint, const char* name, void** function, uint64_t,
      MayBeNull<int> status) {
  const int error = LookUp(name, function, status, __builtin_return_address(0));
  return error == kSuccess ? kSuccess : Failed(error);
}
ENTRY(int, cudaGetDriverEntryPointByVersion, const char* name, void** function, unsigned, uint64_t,
      MayBeNull<int> status) {
  const int error = LookUp(name, function, status, __builtin_return_address(0));
  return error == kSuccess ? kSuccess : Failed(error);
}
ENTRY(int, cuGetProcAddress, const char* name, void** function, int, uint64_t) {
  return LookUp(name, function, nullptr, __builtin_return_address(0));
}
ENTRY(int, cuGetProcAddress_v2, const char* name, void** function, int, uint64_t,
      MayBeNull<int> status) {
  return LookUp(name, function, status, __builtin_return_address(0));
}

}  // namespace
}  // namespace memreplay::card

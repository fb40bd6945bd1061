// The CUDA runtime: errors, devices and their properties.
#include <cstdio>
#include <cstring>
#include <utility>

#include "record/card/api/attributes.h"
#include "record/card/device/cuda_errors.h"
#include "record/card/device/device.h"
#include "record/card/device/entry.h"

namespace memreplay::card {
namespace {

ENTRY(int, cudaGetLastError, void) { return std::exchange(LastError(), kSuccess); }
ENTRY(int, cudaPeekAtLastError, void) { return LastError(); }

struct ErrorText {
  int error;
  const char* name;
  const char* text;
};
constexpr ErrorText kErrorTexts[] = {
    {kSuccess, "cudaSuccess", "no error"},
    {kInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {kMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {kInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {kNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {kInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {kNoKernelImage, "cudaErrorNoKernelImageForDevice",
     "no kernel image is available for execution on the device"},
    {kInvalidHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {kSymbolNotFound, "cudaErrorSymbolNotFound", "named symbol not found"},
    {kNotReady, "cudaErrorNotReady", "device not ready"},
    {kPeerAccessAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled",
     "peer access is already enabled"},
    {kNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {kCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {kCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
};
const ErrorText& TextOf(int error) {
  for (const ErrorText& known : kErrorTexts) {
    if (known.error == error) return known;
  }
  static constexpr ErrorText kOther = {999, "cudaErrorUnknown", "unknown error"};
  return kOther;
}

ENTRY(const char*, cudaGetErrorString, int error) { return TextOf(error).text; }
ENTRY(const char*, cudaGetErrorName, int error) { return TextOf(error).name; }
DOES(cuGetErrorString, (int error, const char** text), *text = TextOf(error).text)
DOES(cuGetErrorName, (int error, const char** text), *text = TextOf(error).name)

ENTRY(int, cudaGetDeviceCount, int* count) {
  *count = TheDevice().VisibleCount();
  return *count == 0 ? Failed(kNoDevice) : kSuccess;
}
DOES(cudaGetDevice, (int* card), *card = CurrentCard())
ENTRY(int, cudaSetDevice, int card) {
  if (NoSuchCard(card)) return Failed(kInvalidDevice);
  CurrentCard() = card;
  return kSuccess;
}
ENTRY(int, cudaDeviceReset, void) { return kSuccess; }
ENTRY(int, cudaInitDevice, int card, unsigned, unsigned) {
  return NoSuchCard(card) ? Failed(kInvalidDevice) : kSuccess;
}
ENTRY(int, cudaSetDeviceFlags, unsigned) { return kSuccess; }
DOES(cudaGetDeviceFlags, (unsigned* flags), *flags = 0)
ENTRY(int, cudaDeviceGetAttribute, int* value, int attribute, int card) {
  if (NoSuchCard(card)) return Failed(kInvalidDevice);
  return AttributeOf(TheDevice().settings, attribute, value) ? kSuccess : Failed(kInvalidValue);
}
ENTRY(int, cudaGetDeviceProperties, char* properties, int card) {
  if (NoSuchCard(card)) return Failed(kInvalidDevice);
  FillProperties(TheDevice().settings, Versions().cuda, card, properties);
  return kSuccess;
}
ALSO(cudaGetDeviceProperties_v2, cudaGetDeviceProperties);
DOES_LOCKED(cudaDeviceSynchronize, (void), d.streams.SynchronizeCard(CurrentCard(), d.now()))
ENTRY(int, cudaDeviceGetStreamPriorityRange, MayBeNull<int> least, MayBeNull<int> greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return kSuccess;
}
DOES(cudaRuntimeGetVersion, (int* version), *version = Versions().cuda)
DOES(cudaDriverGetVersion, (int* version), *version = Versions().cuda)
ENTRY(int, cudaDeviceCanAccessPeer, int* can, int card, int peer) {
  if (NoSuchCard(card) || NoSuchCard(peer)) return Failed(kInvalidDevice);
  *can = card != peer ? 1 : 0;
  return kSuccess;
}
ENTRY(int, cudaDeviceEnablePeerAccess, int peer, unsigned) {
  return NoSuchCard(peer) ? Failed(kInvalidDevice) : kSuccess;
}
ENTRY(int, cudaDeviceGetPCIBusId, char* text, int size, int card) {
  if (NoSuchCard(card)) return Failed(kInvalidDevice);
  std::snprintf(text, static_cast<size_t>(size), "0000:%02x:00.0", card + 1);
  return kSuccess;
}
ENTRY(int, cudaDeviceGetByPCIBusId, int* card, const char* text) {
  unsigned bus = 0;
  if (std::sscanf(text, "%*x:%x:", &bus) != 1 || NoSuchCard(static_cast<int>(bus) - 1)) {
    return Failed(kInvalidValue);
  }
  *card = static_cast<int>(bus) - 1;
  return kSuccess;
}
DOES(cudaDeviceGetLimit, (size_t * value, int), *value = 0)
ENTRY(int, cudaDeviceSetLimit, int, size_t) { return kSuccess; }
ENTRY(int, cudaProfilerStart, void) { return kSuccess; }
ENTRY(int, cudaProfilerStop, void) { return kSuccess; }
ENTRY(char, __cudaInitModule, void**) { return 1; }

}  // namespace
}  // namespace memreplay::card

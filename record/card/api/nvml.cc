// NVML: how many cards there are and what they are called. No other process uses them.
#include <cstdio>
#include <cstring>

#include "record/card/device.h"
#include "record/card/entry.h"

namespace memreplay::card {
namespace {

enum : int { kSuccess = 0, kInvalidArgument = 2, kNotSupported = 3, kNotFound = 6 };

// A handle is the card's number plus 1.
int card_of(const void* handle) { return static_cast<int>(number(handle)) - 1; }
int give(int card, void** handle) {
  if (card < 0 || card >= device().count()) return kNotFound;
  *handle = pointer(static_cast<std::uint64_t>(card) + 1);
  return kSuccess;
}

ENTRY(int, nvmlInit_v2, void) { return kSuccess; }
ALSO(nvmlInit, nvmlInit_v2);
ENTRY(int, nvmlInitWithFlags, unsigned) { return kSuccess; }
ENTRY(int, nvmlShutdown, void) { return kSuccess; }
ENTRY(const char*, nvmlErrorString, int error) {
  return error == kSuccess ? "Success" : "Not Supported";
}
ENTRY(int, nvmlDeviceGetCount_v2, unsigned* count) {
  *count = static_cast<unsigned>(device().count());
  return kSuccess;
}
ALSO(nvmlDeviceGetCount, nvmlDeviceGetCount_v2);
ENTRY(int, nvmlDeviceGetHandleByIndex_v2, unsigned index, void** handle) {
  return give(static_cast<int>(index), handle);
}
ALSO(nvmlDeviceGetHandleByIndex, nvmlDeviceGetHandleByIndex_v2);
ENTRY(int, nvmlDeviceGetHandleByPciBusId_v2, const char* bus, void** handle) {
  unsigned value = 0;
  if (std::sscanf(bus, "%*x:%x:", &value) != 1) return kInvalidArgument;
  return give(static_cast<int>(value) - 1, handle);
}
ENTRY(int, nvmlDeviceGetName, void* handle, char* name, unsigned size) {
  if (card_of(handle) < 0) return kInvalidArgument;
  std::snprintf(name, size, "%s", device().settings.card->title.c_str());
  return kSuccess;
}
ENTRY(int, nvmlDeviceGetUUID, void* handle, char* text, unsigned size) {
  std::snprintf(text, size, "GPU-00000000-0000-0000-0000-%012d", card_of(handle) + 1);
  return kSuccess;
}
ENTRY(int, nvmlDeviceGetIndex, void* handle, unsigned* index) {
  *index = static_cast<unsigned>(card_of(handle));
  return kSuccess;
}
struct MemoryInfo {
  unsigned long long total, free, used;
};
ENTRY(int, nvmlDeviceGetMemoryInfo, void* handle, MemoryInfo* info) {
  Device& d = device();
  const int card = card_of(handle);
  if (card < 0 || card >= d.count()) return kInvalidArgument;
  const std::lock_guard<std::mutex> lock(d.mutex);
  const Memory& memory = d.cards[static_cast<std::size_t>(card)];
  *info = {memory.total(), memory.free_bytes(), memory.total() - memory.free_bytes()};
  return kSuccess;
}
ENTRY(int, nvmlDeviceGetCudaComputeCapability, void*, int* major, int* minor) {
  *major = device().settings.card->capability / 10;
  *minor = device().settings.card->capability % 10;
  return kSuccess;
}
ENTRY(int, nvmlDeviceGetComputeRunningProcesses, void*, unsigned* count, void*) {
  *count = 0;
  return kSuccess;
}
ALSO(nvmlDeviceGetComputeRunningProcesses_v2, nvmlDeviceGetComputeRunningProcesses);
ALSO(nvmlDeviceGetComputeRunningProcesses_v3, nvmlDeviceGetComputeRunningProcesses);
ENTRY(int, nvmlSystemGetDriverVersion, char* text, unsigned size) {
  std::snprintf(text, size, "memreplay");
  return kSuccess;
}
ENTRY(int, nvmlSystemGetCudaDriverVersion_v2, int* version) {
  *version = versions().cuda;
  return kSuccess;
}
ALSO(nvmlSystemGetCudaDriverVersion, nvmlSystemGetCudaDriverVersion_v2);
// There are no links between cards.
ENTRY(int, nvmlDeviceGetNvLinkRemoteDeviceType, void) { return kNotSupported; }
ENTRY(int, nvmlDeviceGetNvLinkRemotePciInfo_v2, void) { return kNotSupported; }
ENTRY(int, nvmlDeviceGetNvLinkState, void) { return kNotSupported; }
// Answers as a driver does for a card that belongs to no fabric: success, and everything is 0,
// including the state "not supported". PyTorch 2.13 maps no expandable segment without it.
ENTRY(int, nvmlDeviceGetGpuFabricInfoV, void* handle, unsigned* info) {
  if (card_of(handle) < 0 || info == nullptr) return kInvalidArgument;
  const unsigned size = *info & 0xffffff;  // the version holds the structure's version and size
  if (size < sizeof(unsigned) || size > 256) return kInvalidArgument;
  std::memset(info + 1, 0, size - sizeof(unsigned));
  return kSuccess;
}

}  // namespace
}  // namespace memreplay::card

// NVML: how many cards there are and what they are called. No other process uses them.
//
// NVML numbers all cards of a machine. A script may name those of the machine that it was written
// for, so CUDA_VISIBLE_DEVICES decides which numbers the simulated cards have.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "record/card/device/device.h"
#include "record/card/device/entry.h"

namespace memreplay::card {
namespace {

enum : int { kSuccess = 0, kInvalidArgument = 2, kNotSupported = 3, kNotFound = 6 };

// Returns what CUDA_VISIBLE_DEVICES calls a card: "3", "GPU-1234..."; "" if it does not name it.
std::string NameOf(int card) {
  const auto names = VisibleDevices();
  const auto at = static_cast<size_t>(card);
  return names.has_value() && at < names->size() ? (*names)[at] : "";
}
// Returns NVML's number of a card.
int IndexOf(int card) {
  const std::string name = NameOf(card);
  char* end = nullptr;
  const long named = std::strtol(name.c_str(), &end, 10);
  return name.empty() || *end != 0 || named < 0 || named > 0xffff ? card : static_cast<int>(named);
}
// Returns one more than the highest number of a card.
int NumberCount() {
  int highest = TheDevice().count();
  for (int card = 0; card < TheDevice().count(); ++card) {
    highest = std::max(highest, IndexOf(card) + 1);
  }
  return highest;
}

// A handle is NVML's number plus 1.
int IndexOf(const void* handle) { return static_cast<int>(Number(handle)) - 1; }
int CardOf(const void* handle) {
  const int index = IndexOf(handle);
  for (int card = 0; card < TheDevice().count(); ++card) {
    if (IndexOf(card) == index) return card;
  }
  return index < TheDevice().count() ? index : -1;
}
int Give(int index, void** handle) {
  if (index < 0 || index >= NumberCount()) return kNotFound;
  *handle = Pointer(static_cast<uint64_t>(index) + 1);
  return CardOf(*handle) < 0 ? kNotFound : kSuccess;
}

ENTRY(int, nvmlInit_v2, void) { return kSuccess; }
ALSO(nvmlInit, nvmlInit_v2);
ENTRY(int, nvmlInitWithFlags, unsigned) { return kSuccess; }
ENTRY(int, nvmlShutdown, void) { return kSuccess; }
ENTRY(const char*, nvmlErrorString, int error) {
  return error == kSuccess ? "Success" : "Not Supported";
}
DOES(nvmlDeviceGetCount_v2, (unsigned* count), *count = static_cast<unsigned>(NumberCount()))
ALSO(nvmlDeviceGetCount, nvmlDeviceGetCount_v2);
ENTRY(int, nvmlDeviceGetHandleByIndex_v2, unsigned index, void** handle) {
  return Give(static_cast<int>(index), handle);
}
ALSO(nvmlDeviceGetHandleByIndex, nvmlDeviceGetHandleByIndex_v2);
ENTRY(int, nvmlDeviceGetHandleByPciBusId_v2, const char* bus, void** handle) {
  unsigned value = 0;
  if (std::sscanf(bus, "%*x:%x:", &value) != 1) return kInvalidArgument;
  return Give(IndexOf(static_cast<int>(value) - 1), handle);
}
ENTRY(int, nvmlDeviceGetName, void* handle, char* name, unsigned size) {
  if (CardOf(handle) < 0) return kInvalidArgument;
  std::snprintf(name, size, "%s", TheDevice().settings.card->title.c_str());
  return kSuccess;
}
ENTRY(int, nvmlDeviceGetUUID, void* handle, char* text, unsigned size) {
  if (CardOf(handle) < 0) return kInvalidArgument;
  const std::string name = NameOf(CardOf(handle));
  if (name.compare(0, 4, "GPU-") == 0) {
    std::snprintf(text, size, "%s", name.c_str());
  } else {
    std::snprintf(text, size, "GPU-00000000-0000-0000-0000-%012d", IndexOf(handle) + 1);
  }
  return kSuccess;
}
DOES(nvmlDeviceGetIndex, (void* handle, unsigned* index),
     *index = static_cast<unsigned>(IndexOf(handle)))
struct MemoryInfo {
  unsigned long long total, free, used;
};
ENTRY(int, nvmlDeviceGetMemoryInfo, void* handle, MemoryInfo* info) {
  const auto [d, lock] = LockedDevice();
  const int card = CardOf(handle);
  if (card < 0) return kInvalidArgument;
  const Memory& memory = d.cards[static_cast<size_t>(card)];
  *info = {memory.total(), memory.free_bytes(), memory.total() - memory.free_bytes()};
  return kSuccess;
}
ENTRY(int, nvmlDeviceGetCudaComputeCapability, void*, int* major, int* minor) {
  *major = TheDevice().settings.card->capability / 10;
  *minor = TheDevice().settings.card->capability % 10;
  return kSuccess;
}
DOES(nvmlDeviceGetComputeRunningProcesses, (void*, unsigned* count, void*), *count = 0)
ALSO(nvmlDeviceGetComputeRunningProcesses_v2, nvmlDeviceGetComputeRunningProcesses);
ALSO(nvmlDeviceGetComputeRunningProcesses_v3, nvmlDeviceGetComputeRunningProcesses);
DOES(nvmlSystemGetDriverVersion, (char* text, unsigned size),
     std::snprintf(text, size, "memreplay"))
DOES(nvmlSystemGetCudaDriverVersion_v2, (int* version), *version = Versions().cuda)
ALSO(nvmlSystemGetCudaDriverVersion, nvmlSystemGetCudaDriverVersion_v2);
// Cards reach each other's memory over PCI Express. There are no links between them.
ENTRY(int, nvmlDeviceGetP2PStatus, void* handle, void* peer, int kind, int* status) {
  enum { kRead = 0, kWrite = 1, kPci = 4, kStatusOk = 0, kStatusNotSupported = 5 };
  if (CardOf(handle) < 0 || CardOf(peer) < 0) return kInvalidArgument;
  const bool reaches = kind == kRead || kind == kWrite || kind == kPci;
  *status = reaches ? kStatusOk : kStatusNotSupported;
  return kSuccess;
}
ENTRY(int, nvmlDeviceGetNvLinkRemoteDeviceType, void) { return kNotSupported; }
ENTRY(int, nvmlDeviceGetNvLinkRemotePciInfo_v2, void) { return kNotSupported; }
ENTRY(int, nvmlDeviceGetNvLinkState, void) { return kNotSupported; }
// Answers as a driver does for a card that belongs to no fabric: success, and everything is 0,
// including the state "not supported". PyTorch 2.13 maps no expandable segment without it.
ENTRY(int, nvmlDeviceGetGpuFabricInfoV, void* handle, unsigned* info) {
  if (CardOf(handle) < 0) return kInvalidArgument;
  const unsigned size = *info & 0xffffff;  // the version holds the structure's version and size
  if (size < sizeof(unsigned) || size > 256) return kInvalidArgument;
  std::memset(info + 1, 0, size - sizeof(unsigned));
  return kSuccess;
}

}  // namespace
}  // namespace memreplay::card

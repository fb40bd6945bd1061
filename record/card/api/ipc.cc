// The CUDA runtime: memory and events that processes share. The process that allocated memory owns
// it; a process that opens it gets addresses, which take no more memory of the card and whose bytes
// are unknown to it.
#include <unistd.h>

#include <cstring>

#include "record/card/device/cuda_errors.h"
#include "record/card/device/device.h"
#include "record/card/device/entry.h"

namespace memreplay::card {
namespace {

constexpr char kIpcMark[8] = "mripc01";

struct IpcHandle {
  char mark[8];
  uint64_t process, address, size;
  char unused[32];
};
static_assert(sizeof(IpcHandle) == 64);

ENTRY(int, cudaIpcGetMemHandle, IpcHandle* handle, const void* address) {
  const auto [d, lock] = LockedDevice();
  const int card = d.backing.CardOf(Number(address));
  if (card < 0) return Failed(kInvalidValue);
  const uint64_t size = d.cards[static_cast<size_t>(card)].SizeOf(Number(address));
  if (size == 0) return Refuse("libcudart.so", "cudaIpcGetMemHandle", Failed(kNotSupported));
  *handle = {};
  std::memcpy(handle->mark, kIpcMark, sizeof kIpcMark);
  handle->process = static_cast<uint64_t>(getpid());
  handle->address = Number(address);
  handle->size = size;
  return kSuccess;
}

ENTRY(int, cudaIpcOpenMemHandle, void** out, IpcHandle handle, unsigned) {
  *out = nullptr;
  if (std::memcmp(handle.mark, kIpcMark, sizeof kIpcMark) != 0) return Failed(kInvalidValue);
  const auto [d, lock] = LockedDevice();
  const uint64_t address = d.cards[static_cast<size_t>(CurrentCard())].Reserve(handle.size);
  if (address == 0) return Failed(kMemoryAllocation);
  d.backing.Open(address, handle.size);
  d.mapped[address] = handle.size;
  Assume("memory was shared by another process, and its values are unknown here");
  *out = Pointer(address);
  return kSuccess;
}

ENTRY(int, cudaIpcCloseMemHandle, void* address) {
  const auto [d, lock] = LockedDevice();
  const int card = d.backing.CardOf(Number(address));
  const auto range = d.mapped.find(Number(address));
  if (card < 0 || range == d.mapped.end()) return Failed(kInvalidValue);
  d.known.Forget(range->first, range->second);
  d.backing.Close(range->first, range->second);
  d.mapped.erase(range);
  d.cards[static_cast<size_t>(card)].Unreserve(Number(address));
  return kSuccess;
}

// Work that the other process recorded before is done.
DOES(cudaIpcGetEventHandle, (IpcHandle * handle, const void*), *handle = {})
DOES(cudaIpcOpenEventHandle, (Event * *out, IpcHandle), *out = new Event)

}  // namespace
}  // namespace memreplay::card

#include "record/card/hooks/pinned_hook.h"

#include <atomic>
#include <cstring>
#include <mutex>

#include "record/card/device/device.h"
#include "record/card/stubs/loaded_symbol.h"

namespace memreplay::card {
namespace {

// c10::DataPtr, as the C++ library lays it out: an address, a unique_ptr whose deleter is a
// function, and a device. It is so large that functions return it in the caller's memory.
struct DataPtr {
  void* data;
  void (*deleter)(void*);
  void* context;
  uint64_t device;
};
using AllocateCall = DataPtr(void* allocator, size_t bytes);
constexpr size_t kHeader = 2;      // words before the first function of a class's table
constexpr size_t kAllocate = 2;    // c10::Allocator's functions: two destructors, allocate
constexpr size_t kFunctions = 32;  // more than any release's allocator has

AllocateCall* allocate = nullptr;
void (*deleter)(void*) = nullptr;
std::atomic<int (*)()> line_of{nullptr};
thread_local int allocator_depth = 0;  // of calls into the allocator
thread_local uint64_t current_free = 0;

void Delete(void* context) {
  Device& d = TheDevice();
  {
    const std::lock_guard<std::mutex> lock(d.mutex);
    current_free = d.pinned.Freeing(Number(context));
  }
  ++allocator_depth;
  deleter(context);
  --allocator_depth;
  const std::lock_guard<std::mutex> lock(d.mutex);
  d.pinned.Freed(current_free);
  current_free = 0;
}

DataPtr AllocateAndNote(void* allocator, size_t bytes) {
  ++allocator_depth;
  DataPtr result = allocate(allocator, bytes);
  --allocator_depth;
  if (result.context == nullptr || bytes == 0) return result;
  int (*const line)() = line_of.load(std::memory_order_relaxed);
  const int number_of_line = line == nullptr ? 0 : line();
  const auto [d, lock] = LockedDevice();
  if (deleter == nullptr) deleter = result.deleter;
  if (deleter != result.deleter) return result;
  result.deleter = &Delete;
  const auto range = d.host.find(Number(result.data));
  d.pinned.Requested(Number(result.context), bytes,
                     range == d.host.end() ? bytes : range->second.size,
                     static_cast<size_t>(number_of_line < 0 ? 0 : number_of_line));
  return result;
}

// Returns PyTorch's allocator of pinned memory, or null.
void* HostAllocator() {
  if (void* get = LoadedSymbol("libtorch_cpu.so", "_ZN2at16getHostAllocatorEN3c1010DeviceTypeE")) {
    return reinterpret_cast<void* (*)(int8_t)>(get)(1);  // CUDA
  }
  if (void* get = LoadedSymbol("libtorch_cuda.so", "_ZN2at4cuda23getCachingHostAllocatorEv")) {
    return reinterpret_cast<void* (*)()>(get)();
  }
  return nullptr;
}

}  // namespace

bool FollowPinned(int (*line)(), const HostAllocatorModel::Limits& limits) {
  void* allocator = HostAllocator();
  if (allocator == nullptr) return false;
  const auto [d, lock] = LockedDevice();
  line_of.store(line);
  if (d.pinned.follows()) return true;
  // The object gets a table of its own with one function replaced; that of its class stays.
  static void* table[kHeader + kFunctions];
  void*** functions = static_cast<void***>(allocator);
  std::memcpy(table, *functions - kHeader, sizeof table);
  allocate = reinterpret_cast<AllocateCall*>(table[kHeader + kAllocate]);
  table[kHeader + kAllocate] = reinterpret_cast<void*>(&AllocateAndNote);
  *functions = table + kHeader;
  d.pinned.Follow(limits);
  return true;
}

void ForgetLines() { line_of.store(nullptr); }

bool InPinnedAllocator() { return allocator_depth > 0; }
uint64_t PinnedFree() { return current_free; }

}  // namespace memreplay::card

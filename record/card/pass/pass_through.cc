// libmemreplay_pass.so, which is preloaded where `record --outside` runs on a real GPU: it passes
// the calls that allocate and free GPU memory on to NVIDIA's libraries and counts those that are
// not PyTorch's. Functions that are linked are found here first; functions of the driver that are
// looked up (dlsym, cuGetProcAddress), as a copy of CUDA's runtime does, are replaced when they
// are.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <string>

#include "record/card/model/json.h"
#include "record/card/model/outside.h"
#include "record/card/stubs/loaded_symbol.h"

namespace memreplay::card {
namespace {

struct State {
  std::mutex mutex;
  Outside outside;
};
State& TheState() {
  static State* instance = new State;  // destructors of other libraries may still free memory
  return *instance;
}

// Calls of the runtime that are under way in this thread: those of the driver within are theirs.
thread_local int depth = 0;

using Address = uint64_t;

// The functions that are replaced. `real` is where a call is passed on to.
struct Function {
  const char* name;
  void* own;
  const char* library;  // the beginning of the file name of the one that has it
  std::atomic<void*> real{nullptr};
};
Function* FunctionOf(const char* name);

void* RealLookup(void* handle, const char* name) {
  using Lookup = void*(void*, const char*);
  static Lookup* const lookup = [] {
    void* found = LoadedSymbol("libc.so.6", "dlsym");
    if (found == nullptr) found = LoadedSymbol("libdl.so.2", "dlsym");
    return reinterpret_cast<Lookup*>(found);
  }();
  return lookup == nullptr ? nullptr : lookup(handle, name);
}

// Returns the card that is current in this thread.
int CurrentCard() {
  using Get = int(int*);
  static std::atomic<Get*> get{nullptr};
  Get* function = get.load();
  if (function == nullptr) {
    function = reinterpret_cast<Get*>(LoadedSymbolOf("libcuda.so", "cuCtxGetDevice"));
    get.store(function);
  }
  int card = 0;
  return function != nullptr && function(&card) == 0 && card >= 0 ? card : 0;
}

template <typename... Arguments>
int PassOn(const char* name, Arguments... arguments) {
  Function& function = *FunctionOf(name);
  void* real = function.real.load();
  if (real == nullptr) {
    real = LoadedSymbolOf(function.library, name);
    if (real == nullptr) return 500;  // CUDA_ERROR_NOT_FOUND
    function.real.store(real);
  }
  ++depth;
  const int error = reinterpret_cast<int (*)(Arguments...)>(real)(arguments...);
  --depth;
  return error;
}

// Passes an allocation on and counts it. `key` is where the function writes address or handle.
template <typename... Arguments>
int Allocate(const char* name, const void* caller, Address* key, size_t bytes,
             Arguments... arguments) {
  const int error = PassOn(name, key, bytes, arguments...);
  if (error != 0 || depth != 0) return error;
  const int card = CurrentCard();
  State& s = TheState();
  const std::lock_guard<std::mutex> lock(s.mutex);
  const char* what = std::strcmp(name, "cuMemAlloc_v2") == 0 ? "cuMemAlloc" : name;
  s.outside.Allocated(what, caller, card, *key, bytes);
  return error;
}

template <typename... Arguments>
int Free(const char* name, Address key, Arguments... arguments) {
  if (depth == 0) {
    State& s = TheState();
    const std::lock_guard<std::mutex> lock(s.mutex);
    s.outside.Freed(key);
  }
  return PassOn(name, key, arguments...);
}

}  // namespace

#define PASS extern "C" __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)

PASS int cudaMalloc(Address* out, size_t bytes) {
  return Allocate("cudaMalloc", CALLER, out, bytes);
}
PASS int cudaMallocAsync(Address* out, size_t bytes, void* stream) {
  return Allocate("cudaMallocAsync", CALLER, out, bytes, stream);
}
PASS int cudaMallocFromPoolAsync(Address* out, size_t bytes, void* pool, void* stream) {
  return Allocate("cudaMallocFromPoolAsync", CALLER, out, bytes, pool, stream);
}
PASS int cudaFree(Address address) { return Free("cudaFree", address); }
PASS int cudaFreeAsync(Address address, void* stream) {
  return Free("cudaFreeAsync", address, stream);
}
PASS int cuMemAlloc_v2(Address* out, size_t bytes) {
  return Allocate("cuMemAlloc_v2", CALLER, out, bytes);
}
PASS int cuMemFree_v2(Address address) { return Free("cuMemFree_v2", address); }
PASS int cuMemAllocAsync(Address* out, size_t bytes, void* stream) {
  return Allocate("cuMemAllocAsync", CALLER, out, bytes, stream);
}
PASS int cuMemAllocFromPoolAsync(Address* out, size_t bytes, void* pool, void* stream) {
  return Allocate("cuMemAllocFromPoolAsync", CALLER, out, bytes, pool, stream);
}
PASS int cuMemFreeAsync(Address address, void* stream) {
  return Free("cuMemFreeAsync", address, stream);
}
PASS int cuMemCreate(Address* handle, size_t bytes, const void* properties, Address flags) {
  return Allocate("cuMemCreate", CALLER, handle, bytes, properties, flags);
}
PASS int cuMemRelease(Address handle) { return Free("cuMemRelease", handle); }

PASS int cuGetProcAddress_v2(const char* name, void** function, int version, uint64_t flags,
                             int* status);
PASS int cuGetProcAddress(const char* name, void** function, int version, uint64_t flags);

namespace {

#define FUNCTION(library, name) \
  { #name, reinterpret_cast < void*>(&name), library }
Function functions[] = {
    FUNCTION("libcudart.so", cudaMalloc),
    FUNCTION("libcudart.so", cudaMallocAsync),
    FUNCTION("libcudart.so", cudaMallocFromPoolAsync),
    FUNCTION("libcudart.so", cudaFree),
    FUNCTION("libcudart.so", cudaFreeAsync),
    FUNCTION("libcuda.so", cuMemAlloc_v2),
    FUNCTION("libcuda.so", cuMemFree_v2),
    FUNCTION("libcuda.so", cuMemAllocAsync),
    FUNCTION("libcuda.so", cuMemAllocFromPoolAsync),
    FUNCTION("libcuda.so", cuMemFreeAsync),
    FUNCTION("libcuda.so", cuMemCreate),
    FUNCTION("libcuda.so", cuMemRelease),
    FUNCTION("libcuda.so", cuGetProcAddress),
    FUNCTION("libcuda.so", cuGetProcAddress_v2),
};

Function* FunctionOf(const char* name) {
  for (Function& function : functions) {
    if (std::strcmp(function.name, name) == 0) return &function;
  }
  return nullptr;
}

// Returns what a caller gets who looked up `name` and found `real`.
void* Replacement(const char* name, void* real) {
  Function* function = real == nullptr ? nullptr : FunctionOf(name);
  if (function == nullptr || real == function->own) return real;
  function->real.store(real);
  return function->own;
}

// Replaces what the driver found. It is asked without the suffix of a version.
void ReplaceFound(const char* name, void** found) {
  const std::string second = std::string(name) + "_v2";
  *found = Replacement(FunctionOf(second.c_str()) != nullptr ? second.c_str() : name, *found);
}

}  // namespace

PASS int cuGetProcAddress_v2(const char* name, void** function, int version, uint64_t flags,
                             int* status) {
  const int error = PassOn("cuGetProcAddress_v2", name, function, version, flags, status);
  if (error == 0) ReplaceFound(name, function);
  return error;
}
PASS int cuGetProcAddress(const char* name, void** function, int version, uint64_t flags) {
  const int error = PassOn("cuGetProcAddress", name, function, version, flags);
  if (error == 0) ReplaceFound(name, function);
  return error;
}

// The last call is a jump, because what RTLD_NEXT means depends on the caller.
PASS void* dlsym(void* handle, const char* name) {
  if (FunctionOf(name) != nullptr) {
    return Replacement(name, RealLookup(handle, name));
  }
  return RealLookup(handle, name);
}

// Sees every block that PyTorch's allocator hands out and takes back, as allocation_hook.cc does.
PASS void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void* address, int64_t size,
                                                                size_t allocated, size_t reserved,
                                                                uint16_t device) {
  constexpr uint8_t kCuda = 1;  // c10::DeviceType
  State& s = TheState();
  if ((device & 0xff) == kCuda) {
    const std::lock_guard<std::mutex> lock(s.mutex);
    ++s.outside.moment;
  }
  using Report = void(void*, int64_t, size_t, size_t, uint16_t);
  static std::atomic<Report*> next{nullptr};
  Report* report = next.load();
  if (report == nullptr) {
    report = reinterpret_cast<Report*>(
        LoadedSymbol("libc10.so", "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"));
    if (report == nullptr) return;
    next.store(report);
  }
  report(address, size, allocated, reserved, device);
}

// Returns the rows of Outside as JSON; valid until the next call.
PASS const char* memreplay_pass_summary() {
  static std::string* const text = new std::string;
  State& s = TheState();
  const std::lock_guard<std::mutex> lock(s.mutex);
  Json json;
  s.outside.Write(&json);
  *text = json.text();
  return text->c_str();
}

}  // namespace memreplay::card

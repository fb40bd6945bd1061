// A libcuda.so.1 of our own: the entry points that memreplay uses (cuda/cuda_driver.h), for a GPU
// that does not exist. It refuses what a driver refuses: mapping outside a reservation or over
// something, freeing what is not there, touching memory that is not mapped. It knows memreplay's
// two kernels by name. It is compiled against the toolkit's cuda.h, so that the signatures are
// NVIDIA's. Errors in its use are answers, never an abort. It is not thread-safe.
#include <cuda.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cuda/verify_pattern.h"
#include "record/card/model/memory.h"
#include "tests/cuda/fake_driver/control.h"
#include "tests/cuda/fake_driver/virtual_memory.h"

namespace memreplay::fake {
namespace {

constexpr uint64_t kPoolStep = uint64_t{32} << 20;
constexpr uint64_t kPoolAlignment = 512;
constexpr uint32_t kFatBinary = 0xba55ed50;  // how an image of nvcc begins
constexpr char kCardName[] = "Fictional GPU";

struct Page {
  uint64_t size = 0;
  std::shared_ptr<Content> content;
  bool has_handle = true;
  uint64_t mappings = 0;
};

struct Pool {
  cuuint64_t threshold = 0;
  std::vector<uint64_t> chunks;        // page handles of kPoolStep each
  std::map<uint64_t, uint64_t> sizes;  // by address, in whole alignments
  cuuint64_t used = 0, used_high = 0, reserved_high = 0;
  cuuint64_t reserved() const { return chunks.size() * kPoolStep; }
};

struct Failure {
  uint64_t left = 0;
  CUresult code = CUDA_SUCCESS;
};

struct Gpu {
  explicit Gpu(uint64_t total) : memory(total, card::kSimulatedRegions, AddressOrder::kUpwards) {}
  int count = 1;
  card::Memory memory;
  VirtualMemory space;
  std::map<uint64_t, uint64_t> segments;  // cuMemAlloc: address -> size
  std::map<uint64_t, uint64_t> ranges;    // reserved: address -> size
  std::map<uint64_t, Page> pages;         // by handle
  Pool pool;
  std::set<void*> streams, events, modules, host;
  uint64_t contexts = 0;
  uint64_t last_mapped = 0;
  bool alias_next = false;
  CUresult broken = CUDA_SUCCESS;  // once a kernel faulted, everything answers this
  std::map<std::string, Failure> failures;
  std::map<std::string, uint64_t> calls;
  void (*watch)(const char* entry_point) = nullptr;
};

constexpr uint64_t kDefaultTotal = uint64_t{16} << 30;
std::unique_ptr<Gpu>& Instance() {
  static auto* const instance = new std::unique_ptr<Gpu>(new Gpu(kDefaultTotal));
  return *instance;
}
Gpu& gpu() { return *Instance(); }

// Counts a call and returns whether it is one that was set to fail.
CUresult Enter(const char* name) {
  ++gpu().calls[name];
  if (gpu().watch != nullptr) gpu().watch(name);
  const auto failure = gpu().failures.find(name);
  if (failure != gpu().failures.end() && --failure->second.left == 0) {
    const CUresult code = failure->second.code;
    gpu().failures.erase(failure);
    return code;
  }
  return gpu().broken;
}

void* NewHandle(std::set<void*>* handles) {
  void* const handle = std::malloc(1);
  handles->insert(handle);
  return handle;
}
CUresult DropHandle(std::set<void*>* handles, void* handle) {
  if (handles->erase(handle) == 0) return CUDA_ERROR_INVALID_HANDLE;
  std::free(handle);
  return CUDA_SUCCESS;
}

// Releases a page's memory once it has neither handle nor mapping.
void DropIfUnused(uint64_t handle) {
  const auto page = gpu().pages.find(handle);
  if (page->second.has_handle || page->second.mappings != 0) return;
  gpu().memory.ReleasePage(handle);
  gpu().pages.erase(page);
}

bool IsReserved(uint64_t address, uint64_t size) {
  auto range = gpu().ranges.upper_bound(address);
  if (range == gpu().ranges.begin()) return false;
  --range;
  return address + size <= range->first + range->second;
}

CUresult Fault() { return gpu().broken = CUDA_ERROR_ILLEGAL_ADDRESS; }

}  // namespace
}  // namespace memreplay::fake

using namespace memreplay::fake;  // NOLINT: everything here is the fake's

#define ENTER(name)                                                           \
  do {                                                                        \
    if (const CUresult code = Enter(name); code != CUDA_SUCCESS) return code; \
  } while (false)

extern "C" {

// --- What tests say ---

void fake_driver_reset(uint64_t total) { Instance() = std::make_unique<Gpu>(total); }
void fake_driver_set_gpus(int count) { gpu().count = count; }
void fake_driver_fail(const char* entry_point, uint64_t nth, int code) {
  if (nth == 0) {
    gpu().failures.erase(entry_point);
  } else {
    gpu().failures[entry_point] = Failure{nth, static_cast<CUresult>(code)};
  }
}
uint64_t fake_driver_calls(const char* entry_point) { return gpu().calls[entry_point]; }
void fake_driver_watch(void (*watch)(const char* entry_point)) { gpu().watch = watch; }
void fake_driver_external(int64_t delta) { gpu().memory.TakeExternal(delta); }
void fake_driver_alias_next_map() { gpu().alias_next = true; }
void fake_driver_held(FakeDriverHeld* held) {
  const Gpu& g = gpu();
  *held = FakeDriverHeld{g.segments.size(), g.pages.size(),      g.space.pages_mapped(),
                         g.ranges.size(),   g.pool.sizes.size(), g.pool.reserved(),
                         g.streams.size(),  g.events.size(),     g.modules.size(),
                         g.host.size(),     g.contexts,          g.memory.free_bytes()};
}

// --- The driver ---

CUresult cuInit(unsigned) {
  ENTER("cuInit");
  return gpu().count == 0 ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int* version) {
  ENTER("cuDriverGetVersion");
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult error, const char** text) {
  switch (error) {
    case CUDA_SUCCESS: *text = "CUDA_SUCCESS"; break;
    case CUDA_ERROR_INVALID_VALUE: *text = "CUDA_ERROR_INVALID_VALUE"; break;
    case CUDA_ERROR_OUT_OF_MEMORY: *text = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case CUDA_ERROR_INVALID_HANDLE: *text = "CUDA_ERROR_INVALID_HANDLE"; break;
    case CUDA_ERROR_NO_BINARY_FOR_GPU: *text = "CUDA_ERROR_NO_BINARY_FOR_GPU"; break;
    case CUDA_ERROR_ILLEGAL_ADDRESS: *text = "CUDA_ERROR_ILLEGAL_ADDRESS"; break;
    case CUDA_ERROR_UNKNOWN: *text = "CUDA_ERROR_UNKNOWN"; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "as the fake driver was told";
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  ENTER("cuDeviceGetCount");
  *count = gpu().count;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  ENTER("cuDeviceGet");
  if (ordinal < 0 || ordinal >= gpu().count) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* name, int length, CUdevice) {
  ENTER("cuDeviceGetName");
  std::strncpy(name, kCardName, static_cast<size_t>(length));
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem(size_t* bytes, CUdevice) {
  ENTER("cuDeviceTotalMem");
  *bytes = gpu().memory.total();
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  ENTER("cuDeviceGetAttribute");
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = 9; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 4; break;
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: *value = 1; break;
    default: *value = 0;
  }
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  ENTER("cuDevicePrimaryCtxRetain");
  ++gpu().contexts;
  *context = reinterpret_cast<CUcontext>(Instance().get());
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice) {
  ++gpu().calls["cuDevicePrimaryCtxRelease"];
  if (gpu().contexts == 0) return CUDA_ERROR_INVALID_VALUE;
  // What a faulted context held goes with it; what a sound one held shows as leaked.
  if (--gpu().contexts == 0 && gpu().broken != CUDA_SUCCESS) {
    Instance() = std::make_unique<Gpu>(gpu().memory.total());
  }
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext) {
  ENTER("cuCtxSetCurrent");
  return CUDA_SUCCESS;
}
CUresult cuCtxSynchronize() {
  ENTER("cuCtxSynchronize");
  return CUDA_SUCCESS;
}

CUresult cuMemGetInfo(size_t* free_bytes, size_t* total) {
  ENTER("cuMemGetInfo");
  *free_bytes = gpu().memory.free_bytes();
  *total = gpu().memory.total();
  return CUDA_SUCCESS;
}
CUresult cuMemAlloc(CUdeviceptr* address, size_t size) {
  ENTER("cuMemAlloc");
  if (size == 0) return CUDA_ERROR_INVALID_VALUE;
  *address = gpu().memory.Allocate(size);
  if (*address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  gpu().segments[*address] = size;
  gpu().space.Map(*address, Mapping{size, 0, std::make_shared<Content>(), true});
  return CUDA_SUCCESS;
}
CUresult cuMemFree(CUdeviceptr address) {
  ENTER("cuMemFree");
  const auto segment = gpu().segments.find(address);
  if (segment == gpu().segments.end()) return CUDA_ERROR_INVALID_VALUE;
  gpu().space.Unmap(address, segment->second);
  gpu().memory.Free(address);
  gpu().segments.erase(segment);
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
  ENTER("cuMemGetAllocationGranularity");
  *granularity = memreplay::kDriverUnit;
  return CUDA_SUCCESS;
}
CUresult cuMemAddressReserve(CUdeviceptr* address, size_t size, size_t, CUdeviceptr,
                             unsigned long long) {
  ENTER("cuMemAddressReserve");
  if (size == 0 || size % memreplay::kDriverUnit != 0) return CUDA_ERROR_INVALID_VALUE;
  *address = gpu().memory.Reserve(size);
  if (*address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  gpu().ranges[*address] = size;
  return CUDA_SUCCESS;
}
CUresult cuMemAddressFree(CUdeviceptr address, size_t size) {
  ENTER("cuMemAddressFree");
  const auto range = gpu().ranges.find(address);
  if (range == gpu().ranges.end() || range->second != size || gpu().space.HasAny(address, size)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  gpu().memory.Unreserve(address);
  gpu().ranges.erase(range);
  return CUDA_SUCCESS;
}
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp*,
                     unsigned long long) {
  ENTER("cuMemCreate");
  if (size == 0 || size % memreplay::kDriverUnit != 0) return CUDA_ERROR_INVALID_VALUE;
  *handle = gpu().memory.CreatePage(size);
  if (*handle == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  gpu().pages[*handle] = Page{.size = size, .content = std::make_shared<Content>()};
  return CUDA_SUCCESS;
}
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  ENTER("cuMemRelease");
  const auto page = gpu().pages.find(handle);
  if (page == gpu().pages.end() || !page->second.has_handle) return CUDA_ERROR_INVALID_VALUE;
  page->second.has_handle = false;
  DropIfUnused(handle);
  return CUDA_SUCCESS;
}
CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long) {
  ENTER("cuMemMap");
  if (gpu().alias_next && gpu().pages.count(gpu().last_mapped) != 0) {
    handle = gpu().last_mapped;
    gpu().alias_next = false;
  }
  const auto page = gpu().pages.find(handle);
  if (page == gpu().pages.end() || page->second.size != size || offset != 0 ||
      !IsReserved(address, size) ||
      !gpu().space.Map(address, Mapping{size, handle, page->second.content, false})) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  ++page->second.mappings;
  gpu().last_mapped = handle;
  return CUDA_SUCCESS;
}
CUresult cuMemUnmap(CUdeviceptr address, size_t size) {
  ENTER("cuMemUnmap");
  const auto mapping = gpu().space.Unmap(address, size);
  if (!mapping.has_value()) return CUDA_ERROR_INVALID_VALUE;
  --gpu().pages[mapping->page].mappings;
  DropIfUnused(mapping->page);
  return CUDA_SUCCESS;
}
CUresult cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc*, size_t) {
  ENTER("cuMemSetAccess");
  return gpu().space.SetAccessible(address, size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Work is done when it is requested, so streams and events have nothing to know.
CUresult cuStreamCreate(CUstream* stream, unsigned) {
  ENTER("cuStreamCreate");
  *stream = static_cast<CUstream>(NewHandle(&gpu().streams));
  return CUDA_SUCCESS;
}
CUresult cuStreamDestroy(CUstream stream) {
  ++gpu().calls["cuStreamDestroy"];
  return DropHandle(&gpu().streams, stream);
}
CUresult cuStreamSynchronize(CUstream stream) {
  ENTER("cuStreamSynchronize");
  return gpu().streams.count(stream) != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  ENTER("cuStreamWaitEvent");
  return gpu().streams.count(stream) != 0 && gpu().events.count(event) != 0
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_HANDLE;
}
CUresult cuEventCreate(CUevent* event, unsigned) {
  ENTER("cuEventCreate");
  *event = static_cast<CUevent>(NewHandle(&gpu().events));
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy(CUevent event) {
  ++gpu().calls["cuEventDestroy"];
  return DropHandle(&gpu().events, event);
}
CUresult cuEventRecord(CUevent event, CUstream stream) {
  ENTER("cuEventRecord");
  return gpu().streams.count(stream) != 0 && gpu().events.count(event) != 0
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_HANDLE;
}
CUresult cuEventSynchronize(CUevent event) {
  ENTER("cuEventSynchronize");
  return gpu().events.count(event) != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

// The pool grows in chunks of 32 MiB and hands out addresses of their own.
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice) {
  ENTER("cuDeviceGetDefaultMemPool");
  *pool = reinterpret_cast<CUmemoryPool>(&gpu().pool);
  return CUDA_SUCCESS;
}
CUresult cuMemPoolGetAttribute(CUmemoryPool, CUmemPool_attribute attribute, void* value) {
  ENTER("cuMemPoolGetAttribute");
  const Pool& pool = gpu().pool;
  auto* const to = static_cast<cuuint64_t*>(value);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: *to = pool.threshold; break;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: *to = pool.used; break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: *to = pool.used_high; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: *to = pool.reserved(); break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: *to = pool.reserved_high; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}
CUresult cuMemPoolSetAttribute(CUmemoryPool, CUmemPool_attribute attribute, void* value) {
  ENTER("cuMemPoolSetAttribute");
  Pool& pool = gpu().pool;
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      pool.threshold = *static_cast<cuuint64_t*>(value);
      break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: pool.used_high = pool.used; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: pool.reserved_high = pool.reserved(); break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}
CUresult cuMemPoolTrimTo(CUmemoryPool, size_t keep) {
  ENTER("cuMemPoolTrimTo");
  Pool& pool = gpu().pool;
  while (!pool.chunks.empty() && pool.reserved() - kPoolStep >= pool.used &&
         pool.reserved() > keep) {
    gpu().memory.ReleasePage(pool.chunks.back());
    pool.chunks.pop_back();
  }
  return CUDA_SUCCESS;
}
CUresult cuMemAllocAsync(CUdeviceptr* address, size_t size, CUstream stream) {
  ENTER("cuMemAllocAsync");
  if (gpu().streams.count(stream) == 0) return CUDA_ERROR_INVALID_HANDLE;
  Pool& pool = gpu().pool;
  const uint64_t taken = (size + kPoolAlignment - 1) / kPoolAlignment * kPoolAlignment;
  if (taken > gpu().memory.total()) return CUDA_ERROR_OUT_OF_MEMORY;
  const size_t before = pool.chunks.size();
  while (pool.reserved() < pool.used + taken) {
    const uint64_t chunk = gpu().memory.CreatePage(kPoolStep);
    if (chunk == 0) {
      while (pool.chunks.size() > before) {
        gpu().memory.ReleasePage(pool.chunks.back());
        pool.chunks.pop_back();
      }
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pool.chunks.push_back(chunk);
  }
  *address = gpu().memory.Reserve(taken);
  gpu().space.Map(*address, Mapping{taken, 0, std::make_shared<Content>(), true});
  pool.sizes[*address] = taken;
  pool.used += taken;
  pool.used_high = std::max(pool.used_high, pool.used);
  pool.reserved_high = std::max(pool.reserved_high, pool.reserved());
  return CUDA_SUCCESS;
}
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  ENTER("cuMemFreeAsync");
  if (gpu().streams.count(stream) == 0) return CUDA_ERROR_INVALID_HANDLE;
  Pool& pool = gpu().pool;
  const auto size = pool.sizes.find(address);
  if (size == pool.sizes.end()) return CUDA_ERROR_INVALID_VALUE;
  gpu().space.Unmap(address, size->second);
  gpu().memory.Unreserve(address);
  pool.used -= size->second;
  pool.sizes.erase(size);
  return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  ENTER("cuModuleLoadData");
  uint32_t magic = 0;
  std::memcpy(&magic, image, sizeof magic);
  if (magic != kFatBinary) return CUDA_ERROR_INVALID_IMAGE;
  *module = static_cast<CUmodule>(NewHandle(&gpu().modules));
  return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule module) {
  ++gpu().calls["cuModuleUnload"];
  return DropHandle(&gpu().modules, module);
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  ENTER("cuModuleGetFunction");
  if (gpu().modules.count(module) == 0) return CUDA_ERROR_INVALID_HANDLE;
  for (const char* const known : {memreplay::kFillKernel, memreplay::kCheckKernel}) {
    if (std::strcmp(known, name) != 0) continue;
    *function = reinterpret_cast<CUfunction>(const_cast<char*>(known));
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}
CUresult cuLaunchKernel(CUfunction function, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned, unsigned, CUstream stream, void** arguments, void**) {
  ENTER("cuLaunchKernel");
  if (gpu().streams.count(stream) == 0) return CUDA_ERROR_INVALID_HANDLE;
  const auto argument = [&](int i) { return *static_cast<uint64_t*>(arguments[i]); };
  const uint64_t address = argument(0);
  const uint64_t size = argument(1);
  const uint64_t seed = argument(2);
  // As on a GPU, the launch succeeds and a fault shows when the launch is waited for.
  if (reinterpret_cast<const char*>(function) == memreplay::kFillKernel) {
    if (!gpu().space.Fill(address, size, seed)) Fault();
  } else {
    auto* const first_bad = reinterpret_cast<uint64_t*>(argument(3));
    if (!gpu().space.Check(address, size, seed, first_bad)) Fault();
  }
  return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void** memory, size_t size, unsigned) {
  ENTER("cuMemHostAlloc");
  *memory = std::calloc(1, size);
  gpu().host.insert(*memory);
  return CUDA_SUCCESS;
}
CUresult cuMemHostGetDevicePointer(CUdeviceptr* address, void* memory, unsigned) {
  ENTER("cuMemHostGetDevicePointer");
  *address = reinterpret_cast<CUdeviceptr>(memory);
  return CUDA_SUCCESS;
}
CUresult cuMemFreeHost(void* memory) {
  ++gpu().calls["cuMemFreeHost"];
  return DropHandle(&gpu().host, memory);
}
CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, size_t size) {
  ENTER("cuMemcpyDtoH");
  return gpu().space.Read(from, size, static_cast<uint8_t*>(to)) ? CUDA_SUCCESS
                                                                 : CUDA_ERROR_INVALID_VALUE;
}

}  // extern "C"

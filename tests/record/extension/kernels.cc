// A library with kernels of its own, as nvcc makes it of a .cu file: it registers an image with
// CUDA's runtime when it is loaded, launches by the runtime or by the driver, and takes memory past
// PyTorch.
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>

extern "C" {

struct Dim {
  unsigned x, y, z;
};
void** __cudaRegisterFatBinary(const void* wrapper);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaRegisterFunction(void** handle, const char* host, char* device, const char* name,
                            int threads, void*, void*, void*, void*, int*);
int cudaLaunchKernel(const void* function, Dim grid, Dim block, void** arguments,
                     std::size_t shared, void* stream);
int cudaGetLastError();
int cudaMalloc(void** out, std::size_t size);
int cudaMallocAsync(void** out, std::size_t size, void* stream);
int cudaFreeAsync(void* memory, void* stream);
int cublasCreate_v2(void** handle);
int cudnnCreate(void** handle);
// PyTorch's libraries do not use these two, and this one does not say in which library they are.
int cublasHgemm(void*, int, int, int, int, int, const void*, const void*, int, const void*, int,
                const void*, void*, int);
int cublasXtGetNumBoards(int devices, int* ids, int* boards);

}  // extern "C"

namespace {

// One image of machine code, as fatbinary lays it out (record/card/api/runtime_kernels.cc).
struct Image {
  std::uint32_t magic = 0xba55ed50;
  std::uint16_t version = 1, header_size = 16;
  std::uint64_t size = 40;
  std::uint16_t kind = 2, image_version = 1;
  std::uint32_t image_header_size = 40;
  std::uint64_t image_size = 0;
  std::uint32_t compressed_size = 0, options = 0;
  std::uint16_t minor = 0, major = 0;
  std::uint32_t architecture;
  std::uint64_t rest = 0;
};
struct Wrapper {
  std::uint32_t magic = 0x466243b1, version = 1;
  const void* data;
  void* rest = nullptr;
};

Image ada{.architecture = 89}, blackwell{.architecture = 120};
Wrapper for_ada{.data = &ada}, for_blackwell{.data = &blackwell};
char scale_here, scale_there;  // what nvcc makes of a __global__ function on the host

void Register(const Wrapper* wrapper, char* function) {
  void** handle = __cudaRegisterFatBinary(wrapper);
  __cudaRegisterFunction(handle, function, nullptr, "scale", -1, nullptr, nullptr, nullptr, nullptr,
                         nullptr);
  __cudaRegisterFatBinaryEnd(handle);
}

__attribute__((constructor)) void RegisterKernels() {
  Register(&for_ada, &scale_here);
  Register(&for_blackwell, &scale_there);
}

int Launch(const void* function, float* data) {
  void* arguments[] = {&data};
  return cudaLaunchKernel(function, {1, 1, 1}, {32, 1, 1}, arguments, 0, nullptr);
}

}  // namespace

// Errors of CUDA; 0: none.
extern "C" int launch(float* data) { return Launch(&scale_here, data); }
extern "C" int launch_of_another_architecture(float* data) {
  Launch(&scale_there, data);
  return cudaGetLastError();
}
extern "C" int take(std::size_t bytes) {
  void* memory = nullptr;
  return cudaMalloc(&memory, bytes);
}

namespace {

// Calls a function of the driver, which other allocators look up at run time.
template <typename... Arguments>
int Driver(const char* name, Arguments... arguments) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  void* function = driver == nullptr ? nullptr : dlsym(driver, name);
  return function == nullptr ? -1 : reinterpret_cast<int (*)(Arguments...)>(function)(arguments...);
}

struct Properties {  // CUmemAllocationProp, and the head of CUmemPoolProps
  int type = 1, handle_types = 0, location_type = 1, location_id = 0;
  std::uint64_t rest[12] = {};
};

}  // namespace

// Takes memory as CuPy and RMM do: twice from the default pool, once after it was freed.
extern "C" int take_in_order(std::size_t bytes) {
  for (int i = 0; i < 2; ++i) {
    void* memory = nullptr;
    if (int error = cudaMallocAsync(&memory, bytes, nullptr); error != 0) return error;
    if (int error = i == 0 ? cudaFreeAsync(memory, nullptr) : 0; error != 0) return error;
  }
  return 0;
}
// Takes memory as a copy of CUDA's runtime does, by a function that the driver itself finds.
extern "C" int take_by_lookup(std::size_t bytes) {
  void* function = nullptr;
  int status = 0;
  if (int error =
          Driver("cuGetProcAddress_v2", "cuMemAlloc", &function, 12000, std::uint64_t{0}, &status);
      error != 0) {
    return error;
  }
  std::uint64_t memory = 0;
  return reinterpret_cast<int (*)(std::uint64_t*, std::size_t)>(function)(&memory, bytes);
}
// Takes memory from a pool of its own, as RMM's cuda_async_memory_resource does.
extern "C" int take_from_pool(std::size_t bytes) {
  const Properties properties;
  void* pool = nullptr;
  std::uint64_t memory = 0;
  if (int error = Driver("cuMemPoolCreate", &pool, &properties); error != 0) return error;
  return Driver("cuMemAllocFromPoolAsync", &memory, bytes, pool, static_cast<void*>(nullptr));
}
// Takes pages in a range of addresses, as the sleep mode of vLLM does; the range is twice as large.
extern "C" int take_pages(std::size_t bytes) {
  const Properties properties;
  std::uint64_t address = 0, page = 0;
  if (int error = Driver("cuMemAddressReserve", &address, 2 * bytes, std::size_t{0},
                         std::uint64_t{0}, std::uint64_t{0});
      error != 0) {
    return error;
  }
  if (int error = Driver("cuMemCreate", &page, bytes, &properties, std::uint64_t{0}); error != 0) {
    return error;
  }
  return Driver("cuMemMap", address, bytes, std::size_t{0}, page, std::uint64_t{0});
}

// An allocator for torch.cuda.MemPool that can sleep: its pages are released and made anew under
// the same address.
namespace {

std::uint64_t slept_address = 0, slept_page = 0;
std::size_t slept_bytes = 0;

}  // namespace

extern "C" int wake_up() {
  const Properties properties;
  if (int error = Driver("cuMemCreate", &slept_page, slept_bytes, &properties, std::uint64_t{0});
      error != 0) {
    return error;
  }
  return Driver("cuMemMap", slept_address, slept_bytes, std::size_t{0}, slept_page,
                std::uint64_t{0});
}
extern "C" int sleep_now() {
  if (int error = Driver("cuMemUnmap", slept_address, slept_bytes); error != 0) return error;
  return Driver("cuMemRelease", slept_page);
}
extern "C" void* pool_malloc(std::size_t bytes, int, void*) {
  slept_bytes = bytes;
  if (Driver("cuMemAddressReserve", &slept_address, bytes, std::size_t{0}, std::uint64_t{0},
             std::uint64_t{0}) != 0 ||
      wake_up() != 0) {
    return nullptr;
  }
  return reinterpret_cast<void*>(slept_address);
}
extern "C" void pool_free(void*, std::size_t, int, void*) { sleep_now(); }

extern "C" int make_handles() {
  void* handle = nullptr;
  for (int i = 0; i < 2; ++i) {
    if (int error = cublasCreate_v2(&handle); error != 0) return error;
  }
  return cudnnCreate(&handle);
}

extern "C" int multiply() {
  return cublasHgemm(nullptr, 0, 0, 1, 1, 1, nullptr, nullptr, 1, nullptr, 1, nullptr, nullptr, 1);
}
extern "C" int count_boards() {
  int id = 0, boards = 0;
  return cublasXtGetNumBoards(1, &id, &boards);
}

extern "C" int launch_by_driver(float* data) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return -1;
  const auto load =
      reinterpret_cast<int (*)(void**, const void*)>(dlsym(driver, "cuModuleLoadData"));
  const auto find =
      reinterpret_cast<int (*)(void**, void*, const char*)>(dlsym(driver, "cuModuleGetFunction"));
  const auto start =
      reinterpret_cast<int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                               unsigned, void*, void**, void**)>(dlsym(driver, "cuLaunchKernel"));
  if (load == nullptr || find == nullptr || start == nullptr) return -2;
  void *module = nullptr, *function = nullptr;
  if (int error = load(&module, "// PTX"); error != 0) return error;
  if (int error = find(&function, module, "scale"); error != 0) return error;
  void* arguments[] = {&data};
  return start(function, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr);
}

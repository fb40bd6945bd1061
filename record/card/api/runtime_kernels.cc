// The CUDA runtime: kernels. They are registered by name and image, launched and never run.
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "record/card/api/attributes.h"
#include "record/card/device/cuda_errors.h"
#include "record/card/device/device.h"
#include "record/card/device/entry.h"
#include "record/card/stubs/loaded_symbol.h"

namespace memreplay::card {
namespace {

// The images of kernels that nvcc puts into a library.
constexpr uint32_t kWrapperMagic = 0x466243b1;
constexpr uint32_t kFatBinaryMagic = 0xba55ed50;
enum Kind : uint16_t { kPtx = 1, kMachineCode = 2 };

struct Wrapper {
  uint32_t magic, version;
  const unsigned char* data;
};
struct FatBinary {
  uint32_t magic;
  uint16_t version, header_size;
  uint64_t size;  // of all images
};
struct Image {
  uint16_t kind, version;
  uint32_t header_size;
  uint64_t size;
  uint32_t compressed_size, options;
  uint16_t minor, major;
  uint32_t architecture;
};

// Returns the architecture (89 for sm_89) of the image that a card of this capability would run:
// the highest machine code of its major version that is not above it, else the highest PTX that is
// not above it. Returns 0 if it can run none. `wrapper` is what nvcc's code passes to
// __cudaRegisterFatBinary.
int ArchitectureFor(const void* wrapper, int capability) {
  const auto* w = static_cast<const Wrapper*>(wrapper);
  if (w == nullptr || w->magic != kWrapperMagic || w->data == nullptr) return 0;
  const auto* binary = reinterpret_cast<const FatBinary*>(w->data);
  if (binary->magic != kFatBinaryMagic) return 0;
  const unsigned char* at = w->data + binary->header_size;
  const unsigned char* const end = at + binary->size;
  int code = 0, ptx = 0;
  while (at + sizeof(Image) <= end) {
    const auto* image = reinterpret_cast<const Image*>(at);
    const int architecture = static_cast<int>(image->architecture);
    if (architecture <= capability) {
      if (image->kind == kMachineCode && architecture / 10 == capability / 10 &&
          architecture > code) {
        code = architecture;
      }
      if (image->kind == kPtx && architecture > ptx) ptx = architecture;
    }
    const uint64_t size = image->header_size + image->size;
    if (size == 0 || size > static_cast<uint64_t>(end - at)) break;
    at += size;
  }
  return code != 0 ? code : ptx;
}

// What is read of a fat binary when a kernel of it is first needed: a library has hundreds, and
// each is on pages of the file that nothing else reads.
struct Images {
  int architecture;  // of the image that the card would run; 0: it has none
  std::string note;  // for a library that is not PyTorch's: what the summary says when it launches
};

// What nvcc put into a library; each holds a few kernels. It is never destroyed: a library may be
// unloaded while its kernels are still known here.
struct LoadedBinary {
  const void* wrapper;  // in the library
  std::atomic<const Images*> images{nullptr};
  std::atomic<bool> on_card{false};  // the driver loads it when its first kernel is launched
};

const Images* ReadImages(const void* wrapper) {
  const std::optional<Card>& card = TheDevice().settings.card;
  auto* images = new Images{ArchitectureFor(wrapper, card.has_value() ? card->capability : 0), ""};
  const std::string library = LoadedPath(wrapper);
  for (const char* known : {"/torch/lib/", "/torchvision", "/torchaudio/"}) {
    if (library.find(known) != std::string::npos) return images;
  }
  images->note = "kernels of " + library.substr(library.rfind('/') + 1) +
                 " compute nothing; tensors that they write keep their old values";
  return images;
}

const Images& ImagesOf(LoadedBinary* binary) {
  const Images* known = binary->images.load(std::memory_order_acquire);
  if (known != nullptr) return *known;
  const Images* read = ReadImages(binary->wrapper);
  if (binary->images.compare_exchange_strong(known, read)) return *read;
  delete read;  // another thread was faster
  return *known;
}

struct Kernel {
  LoadedBinary* binary = nullptr;
  std::atomic<bool> on_card{false};
};

// Kernels by their host address. Written while libraries are loaded.
struct Kernels {
  std::mutex mutex;
  std::unordered_map<const void*, Kernel> by_address;
};
Kernels& TheKernels() {
  static Kernels* instance = new Kernels;
  return *instance;
}

// Returns null if the kernel was not registered, as when its library was loaded by driver calls.
Kernel* KernelOf(const void* function) {
  Kernels& k = TheKernels();
  const std::lock_guard<std::mutex> lock(k.mutex);
  const auto found = k.by_address.find(function);
  return found == k.by_address.end() ? nullptr : &found->second;
}

// Counts a kernel and its module when the kernel is launched for the first time, which is when the
// driver loads them (CUDA_MODULE_LOADING=LAZY, the default since CUDA 12.2 and PyTorch's own).
void LoadOnCard(Kernel* kernel, const void* function) {
  if (kernel->on_card.exchange(true)) return;
  const void* wrapper = kernel->binary->wrapper;
  if (!kernel->binary->on_card.exchange(true)) TheDevice().Made(kModuleObject, wrapper, wrapper);
  TheDevice().Made(kKernelObject, wrapper, function);
}

ENTRY(void**, __cudaRegisterFatBinary, const void* wrapper) {
  return reinterpret_cast<void**>(new LoadedBinary{wrapper});
}
ENTRY(void, __cudaRegisterFatBinaryEnd, void**) {}
ENTRY(void, __cudaUnregisterFatBinary, void** handle) {
  static const Images* const none = new Images{0, ""};  // it can be read no more
  const Images* unread = nullptr;
  reinterpret_cast<LoadedBinary*>(handle)->images.compare_exchange_strong(unread, none);
}
ENTRY(void, __cudaRegisterFunction, void** handle, const void* host) {
  Kernels& k = TheKernels();
  const std::lock_guard<std::mutex> lock(k.mutex);
  Kernel& kernel = k.by_address[host];
  kernel.binary = reinterpret_cast<LoadedBinary*>(handle);
  kernel.on_card = false;
}
ENTRY(void, __cudaRegisterVar, void) {}
ENTRY(void, __cudaRegisterManagedVar, void) {}

struct Dim {
  unsigned x, y, z;
};
struct Call {
  Dim grid, block;
  size_t shared;
  void* stream;
};
constexpr int kMaxCalls = 32;  // nested configurations of one thread; one in practice
thread_local Call calls[kMaxCalls];
thread_local int call_count = 0;

ENTRY(unsigned, __cudaPushCallConfiguration, Dim grid, Dim block, size_t shared, void* stream) {
  if (call_count == kMaxCalls) return 1;
  calls[call_count++] = {grid, block, shared, stream};
  return 0;
}
ENTRY(int, __cudaPopCallConfiguration, Dim* grid, Dim* block, size_t* shared, void** stream) {
  if (call_count == 0) return Failed(kInvalidConfiguration);
  const Call& call = calls[--call_count];
  *grid = call.grid;
  *block = call.block;
  *shared = call.shared;
  *stream = call.stream;
  return kSuccess;
}

int Launch(const void* function) {
  if (Kernel* kernel = KernelOf(function); kernel != nullptr) {
    const Images& images = ImagesOf(kernel->binary);
    if (images.architecture == 0) return Failed(kNoKernelImage);
    if (!images.note.empty()) Assume(images.note.c_str());
    if (!kernel->on_card.load(std::memory_order_relaxed)) LoadOnCard(kernel, function);
  }
  TheDevice().Launch();
  return kSuccess;
}
ENTRY(int, cudaLaunchKernel, const void* function) { return Launch(function); }
ENTRY(int, cudaLaunchCooperativeKernel, const void* function) { return Launch(function); }
ENTRY(int, cudaLaunchKernelExC, const void*, const void* function) { return Launch(function); }
// From 13 on a launch takes a handle; here it is the host's address.
DOES(__cudaGetKernel, (const void** kernel, const void* function), *kernel = function)
DOES(cudaGetKernel, (const void** kernel, const void* function), *kernel = function)
ENTRY(int, __cudaLaunchKernel, const void* kernel) { return Launch(kernel); }

struct FunctionAttributes {
  size_t shared, constant, local;
  int threads_per_block, registers, ptx_version, binary_version, cache_mode_ca, dynamic_shared,
      carveout, padding;
};
ENTRY(int, cudaFuncGetAttributes, FunctionAttributes* attributes, const void* function) {
  const Kernel* kernel = KernelOf(function);
  const Images* images = kernel == nullptr ? nullptr : &ImagesOf(kernel->binary);
  if (images != nullptr && images->architecture == 0) return Failed(kNoKernelImage);
  std::memset(attributes, 0, CudaFrom(12000) ? 144 : 56);
  attributes->threads_per_block = 1024;
  attributes->registers = kAssumedRegisters;
  attributes->ptx_version = attributes->binary_version =
      images != nullptr ? images->architecture : TheDevice().settings.card->capability;
  attributes->dynamic_shared = 49152;
  return kSuccess;
}
ENTRY(int, cudaFuncSetAttribute, const void*, int, int) { return kSuccess; }
ENTRY(int, cudaKernelSetAttributeForDevice, const void*, int, int, int) { return kSuccess; }
ENTRY(int, cudaFuncSetCacheConfig, const void*, int) { return kSuccess; }
DOES(cudaFuncGetName, (const char** name, const void*), *name = "kernel")

DOES(cudaOccupancyMaxActiveBlocksPerMultiprocessor,
     (int* blocks, const void*, int threads, size_t shared),
     *blocks = BlocksPerMultiprocessor(*TheDevice().settings.card, threads, shared))
ENTRY(int, cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, int* blocks, const void* kernel,
      int threads, size_t shared, unsigned) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel, threads, shared);
}
ENTRY(int, cuOccupancyMaxActiveBlocksPerMultiprocessor, int* blocks, const void* kernel,
      int threads, size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel, threads, shared);
}

// A variable of the card has no address of its own: what is copied there is forgotten.
alignas(16) char symbols[65536];
DOES(cudaGetSymbolAddress, (void** out, const void*), *out = symbols)

}  // namespace
}  // namespace memreplay::card

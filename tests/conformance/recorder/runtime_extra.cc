// What a whole installed PyTorch wants of the CUDA runtime besides the allocator's part
// (../fake_cuda/runtime.cc): enough to be imported and to allocate. Kernels are registered and
// forgotten; launching one, copying or capturing reports success and does nothing.
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace {
int anything = 0;
}

extern "C" {

void** __cudaRegisterFatBinary(void*) {
  static void* handle = &anything;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, void*, void*, void*,
                            void*, int*) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}
int __cudaPopCallConfiguration(void*, void*, std::size_t*, void**) { return 0; }
unsigned __cudaPushCallConfiguration(unsigned long long, unsigned, unsigned long long, unsigned,
                                     std::size_t, void*) {
  return 0;
}

int cudaDeviceGetAttribute(int* value, int, int) {
  *value = 1;
  return 0;
}
int cudaDeviceGetPCIBusId(char* id, int size, int) {
  std::strncpy(id, "0000:00:00.0", static_cast<std::size_t>(size));
  return 0;
}
int cudaHostAlloc(void** out, std::size_t bytes, unsigned) {
  *out = std::malloc(bytes);
  return 0;
}
int cudaMallocHost(void** out, std::size_t bytes) {
  *out = std::malloc(bytes);
  return 0;
}
int cudaFreeHost(void* address) {
  std::free(address);
  return 0;
}
int cudaStreamCreateWithPriority(void** out, unsigned, int priority);
int cudaStreamCreate(void** out) { return cudaStreamCreateWithPriority(out, 0, 0); }
int cudaStreamCreateWithFlags(void** out, unsigned) {
  return cudaStreamCreateWithPriority(out, 0, 0);
}

#define SUCCEEDS(name) \
  int name() { return 0; }
SUCCEEDS(__cudaGetKernel)
SUCCEEDS(__cudaLaunchKernel)
SUCCEEDS(cudaEventRecordWithFlags)
SUCCEEDS(cudaFuncGetAttributes)
SUCCEEDS(cudaFuncSetAttribute)
SUCCEEDS(cudaGetSymbolAddress)
SUCCEEDS(cudaGraphAddNode)
SUCCEEDS(cudaGraphConditionalHandleCreate)
SUCCEEDS(cudaGraphDestroy)
SUCCEEDS(cudaGraphExecDestroy)
SUCCEEDS(cudaGraphGetNodes)
SUCCEEDS(cudaGraphInstantiate)
SUCCEEDS(cudaGraphInstantiateWithFlags)
SUCCEEDS(cudaGraphLaunch)
SUCCEEDS(cudaGraphRetainUserObject)
SUCCEEDS(cudaHostRegister)
SUCCEEDS(cudaHostUnregister)
SUCCEEDS(cudaIpcGetEventHandle)
SUCCEEDS(cudaIpcOpenEventHandle)
SUCCEEDS(cudaKernelSetAttributeForDevice)
SUCCEEDS(cudaLaunchCooperativeKernel)
SUCCEEDS(cudaLaunchHostFunc)
SUCCEEDS(cudaLaunchKernel)
SUCCEEDS(cudaLaunchKernelExC)
SUCCEEDS(cudaLibraryGetGlobal)
SUCCEEDS(cudaLibraryGetKernel)
SUCCEEDS(cudaLibraryGetKernelCount)
SUCCEEDS(cudaLibraryGetManaged)
SUCCEEDS(cudaLibraryGetUnifiedFunction)
SUCCEEDS(cudaLibraryLoadData)
SUCCEEDS(cudaLibraryLoadFromFile)
SUCCEEDS(cudaLibraryUnload)
SUCCEEDS(cudaMallocManaged)
SUCCEEDS(cudaMemcpy2DAsync)
SUCCEEDS(cudaMemcpyToSymbol)
SUCCEEDS(cudaMemset)
SUCCEEDS(cudaMemsetAsync)
SUCCEEDS(cudaOccupancyMaxActiveBlocksPerMultiprocessor)
SUCCEEDS(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)
SUCCEEDS(cudaPointerGetAttributes)
SUCCEEDS(cudaProfilerStart)
SUCCEEDS(cudaProfilerStop)
SUCCEEDS(cudaStreamAddCallback)
SUCCEEDS(cudaStreamBeginCapture)
SUCCEEDS(cudaStreamBeginCaptureToGraph)
SUCCEEDS(cudaStreamEndCapture)
SUCCEEDS(cudaUserObjectCreate)
SUCCEEDS(cudaUserObjectRelease)
#undef SUCCEEDS

}  // extern "C"

#include "report/message/forms.h"

namespace memreplay {
namespace {

namespace rows {

using enum FormKind;

constexpr Form kForms[] = {
    // A server's own words come before the allocator's figures that they quote.
    {"warming up sampler", "", kServing, 5, "vLLM: warming up the sampler", "vLLM 0.8"},
    {"Free memory on device", "", kServing, 5, "vLLM: free memory at the start", "vLLM 0.9"},
    {"No available memory for the cache blocks", "", kServing, 5,
     "vLLM: no memory for the KV cache", "vLLM 0.2"},
    {"can be stored in KV cache", "", kServing, 5, "vLLM: KV cache shorter than the model",
     "vLLM 0.2", "max seq len"},
    {"KV cache is needed", "", kServing, 5, "vLLM: KV cache smaller than one request", "vLLM 0.8",
     "max seq len"},
    {"Error in memory profiling", "", kServing, 5, "vLLM: memory changed while profiling",
     "vLLM 0.5"},
    {"ncrease --mem-fraction-static", "", kServing, 5, "SGLang: no memory for the KV cache"},
    {"apture cuda graph failed", "ut of memory", kServing, 5, "SGLang: capturing graphs"},
    {"apture CUDA graph failed", "ut of memory", kServing, 5, "SGLang: capturing graphs"},
    {"Prefill out of memory", "", kServing, 5, "SGLang: prefill"},
    {"Decode out of memory", "", kServing, 5, "SGLang: decode"},
    {"ot enough memory to handle", "prefill tokens", kServing, 5,
     "Text Generation Inference: prefill"},

    {"more than 1EB memory", "", kBadSize, 5, "PyTorch: more than 1EB", "2.0"},
    {"out of resource: ", "gnoring", kNone, 0, ""},
    {"out of resource: ", "utotun", kNone, 0, ""},
    {"OutOfResources", "gnoring", kNone, 0, ""},
    {"OutOfResources", "utotun", kNone, 0, ""},
    {"unhandled cuda error", "invalid argument", kNone, 0, ""},
    {"out of resource: ", "", kKernel, 5, "Triton: out of resource"},
    {"OutOfResources", "", kKernel, 4, "Triton: OutOfResources"},
    {"invalid configuration argument", "", kKernel, 4, "CUDA: invalid configuration"},

    {"ried to allocate", "DefaultCPUAllocator", kHost, 4, "PyTorch on the CPU", "1.0",
     "DefaultCPUAllocator"},
    {"ried to allocate", "Buy new RAM", kHost, 4, "PyTorch on the CPU", "0.1"},
    {"ried to allocate", "MPS backend", kMps, 4, "PyTorch MPS", "1.13", "MPS backend"},
    {"ried to allocate", "memory block with size larger", kBlockLimit, 4,
     "Intel's extension: block above 4 GB", "IPEX 2.1"},
    {"ried to allocate", "XPU out of memory", kDevice, 4, "PyTorch XPU", "2.4"},
    {"ried to allocate", "NPU out of memory", kDevice, 4, "PyTorch NPU", "torch_npu 1.8"},
    {"ried to allocate", "HIP out of memory", kDevice, 4, "PyTorch HIP", "1.5"},
    {"ried to allocate", "ut of memory", kDevice, 4, "PyTorch CUDA", "1.0"},
    {"ried to allocate", "GPU ", kDevice, 4, "PyTorch CUDA", "1.0"},
    {"ried to allocate", "", kDevice, 3, "PyTorch, cut off", "1.0"},
    {"would exceed allowed memory", "", kAsync, 4, "PyTorch under cudaMallocAsync", "1.12",
     "llocation on device"},
    {"ion on device", "would exceed allowed memory", kAsync, 4, "PyTorch under cudaMallocAsync",
     "1.12"},

    {"ggml_backend_", "ailed to allocate", kOther, 5, "llama.cpp"},
    {"ggml_backend_", "ut of memory", kOther, 5, "llama.cpp"},
    {"ggml_gallocr", "ailed to allocate", kOther, 5, "llama.cpp"},
    {"of pinned memory", "ailed to allocate", kPinned, 4, "llama.cpp: pinned memory"},
    {"model requires more", "system memory", kHost, 4, "Ollama: system memory"},
    {"ErrorOutOfMemory", "kIOGPUCommandBuffer", kOther, 4, "Metal"},
    {"requested buffer of size", "", kOther, 4, "ONNX Runtime"},
    {"requested bytes of", "smaller than", kOther, 4, "ONNX Runtime"},
    {"enough GPU video memory", "", kOther, 4, "DirectML"},
    {"nsufficient GPU memory", "", kOther, 4, "TensorRT-LLM"},
    {"Requested amount of GPU memory", "could not be allocated", kOther, 4, "TensorRT"},
    {"ut of memory allocating", "", kOther, 4, "CuPy"},
    {"ut of memory error on GPU", "", kOther, 5, "Paddle"},
    {"CUDA runtime error: out of memory", "TM]", kOther, 4, "LMDeploy"},
    {"std::bad_alloc", "rmm", kOther, 4, "RMM"},
    {"rmm::out_of_memory", "", kOther, 4, "RMM"},
    {"ion on device", "llocation on device", kSilentDevice, 3,
     "PyTorch under cudaMallocAsync, cut off", "1.12"},
    {"MPS backend out of memory", "", kMps, 4, "PyTorch MPS", "1.13"},
    {"NVML_SUCCESS == ", "", kSilentDevice, 4, "PyTorch: NVML assertion", "2.1"},
    {"THCudaCheck FAIL", "error=2", kSilentDevice, 4, "PyTorch before 1.0", "0.1"},
    {"cuda runtime error (2)", "", kSilentDevice, 4, "PyTorch before 1.0", "0.1"},
    {"CUDA driver error: out of memory", "", kSilentDevice, 4, "PyTorch: CUDA driver error", "2.1"},
    {"CUDA_ERROR_OUT_OF_MEMORY", "pinned host", kPinned, 4, "TensorFlow: pinned memory"},
    {"CUDA_ERROR_OUT_OF_MEMORY", "on host:", kPinned, 4, "TensorFlow: pinned memory"},
    {"CUDA_ERROR_OUT_OF_MEMORY", "", kOther, 3, "TensorFlow or the CUDA driver"},
    {"OOM when allocating tensor", "", kOther, 4, "TensorFlow"},
    {"RESOURCE_EXHAUSTED", "", kOther, 4, "JAX or TensorFlow"},
    {"ResourceExhaustedError", "", kOther, 3, "TensorFlow"},

    {"cumem_allocator.cpp", "ut of memory", kLibrary, 5, "vLLM: cumem_allocator", "vLLM 0.7"},
    {"NCCL WARN Cuda failure", "ut of memory", kLibrary, 4, "NCCL"},
    {"Cuda failure 2", "", kLibrary, 4, "NCCL"},
    {"Failed to CUDA calloc", "", kLibrary, 4, "NCCL"},
    {"unhandled cuda error", "", kLibrary, 2, "NCCL: unhandled cuda error"},
    {"CUBLAS_STATUS_ALLOC_FAILED", "", kLibrary, 4, "cuBLAS"},
    {"CUBLAS_STATUS_NOT_INITIALIZED", "", kLibrary, 4, "cuBLAS"},
    {"HIPBLAS_STATUS_ALLOC_FAILED", "", kLibrary, 4, "hipBLAS"},
    {"CUDNN_STATUS_ALLOC_FAILED", "", kLibrary, 4, "cuDNN"},
    {"CUDNN_STATUS_NOT_INITIALIZED", "", kLibrary, 4, "cuDNN"},
    {"CUSOLVER_STATUS_ALLOC_FAILED", "", kLibrary, 4, "cuSOLVER"},
    {"CUFFT_ALLOC_FAILED", "", kLibrary, 4, "cuFFT"},

    {"cudaHostAlloc", "ut of memory", kPinned, 4, "CUDA: pinned memory"},
    {"cudaHostRegister", "ut of memory", kPinned, 4, "CUDA: pinned memory"},
    {"pinned host memory", "", kPinned, 4, "pinned memory"},

    {"killed by signal: Bus error", "", kSharedMemory, 4, "DataLoader: bus error", "0.4"},
    {"bus error encountered in worker", "", kSharedMemory, 4, "DataLoader: bus error", "0.4"},
    {"nable to open shared memory object", "", kSharedMemory, 4, "PyTorch: shared memory"},
    {"unable to write to file </torch_", "", kSharedMemory, 4, "PyTorch: shared memory"},
    {"nable to allocate shared memory", "", kSharedMemory, 4, "PyTorch: shared memory"},
    {"creating shared memory segment", "", kSharedMemory, 4, "NCCL: shared memory"},
    {"No space left on device", "/dev/shm", kSharedMemory, 4, "shared memory"},
    {"No space left on device", "torch_", kSharedMemory, 4, "shared memory"},

    {"DefaultCPUAllocator", "", kHost, 4, "PyTorch on the CPU", "1.0"},
    {"posix_memalign(&data", "", kHost, 4, "PyTorch on the CPU", "1.0"},
    {"running low on memory", "", kHost, 5, "Ray: the node's memory", "Ray 2.0"},
    {"due to memory pressure (OOM)", "", kHost, 4, "Ray: the node's memory", "Ray 2.2"},
    {"Error 1455", "Win", kHost, 4, "Windows: page file"},
    {"error 1455", "", kHost, 4, "Windows: page file"},
    {"paging file is too small", "", kHost, 4, "Windows: page file"},
    {"RayOutOfMemoryError", "", kHost, 4, "Ray: the node's memory", "Ray 0.6"},
    {"Unable to allocate ", "for an array", kHost, 4, "NumPy"},
    {"Cannot allocate memory", "", kHost, 3, "the system: errno 12"},
    {"std::bad_alloc", "", kHost, 3, "C++: bad_alloc"},
    {"ut of memory: Killed process", "", kKilled, 4, "the kernel's OOM killer"},
    {"ut of memory: Kill process", "", kKilled, 4, "the kernel's OOM killer"},
    {"Killed process ", "anon-rss", kKilled, 4, "the kernel's OOM killer"},
    {"oom-kill:", "", kKilled, 3, "the kernel's OOM killer"},
    {"OOMKilled", "", kKilled, 3, "Kubernetes: OOMKilled"},
    {"oom-kill event", "", kKilled, 4, "Slurm: oom_kill"},
    {"Out Of Memory", "srun: ", kKilled, 3, "Slurm: oom_kill"},
    {"Out Of Memory", "slurm", kKilled, 3, "Slurm: oom_kill"},
    {"memory limit", "slurmstepd: error", kKilled, 4, "Slurm: memory limit"},
    {"State: OUT_OF_MEMORY", "", kKilled, 3, "Slurm: oom_kill"},
    {" OUT_OF_ME", "", kKilled, 3, "Slurm: oom_kill"},
    {"resource: memory", "", kKilled, 3, "Kubernetes: evicted"},
    {"all available RAM", "", kKilled, 3, "Colab: the session crashed"},
    {"Killed signal terminated program", "", kKilled, 3, "a build: compiler killed"},
    {"zsh: killed", "", kKilled, 2, "a killed process"},
    {"Killed         ", "", kKilled, 2, "a killed process"},
    {"Error 137", "***", kKilled, 2, "exit 137"},
    {" code=137", "", kKilled, 2, "exit 137"},
    {"Killed", "", kKilled, 2, "a killed process"},
    {"oom_kill event", "", kKilled, 3, "Slurm: oom_kill"},
    {"killed by signal: Killed", "", kKilled, 3, "DataLoader: worker killed", "0.4"},
    {"exitcode: -9", "", kKilled, 2, "torchrun: exit -9", "1.9"},
    {"exitcode  : -9", "", kKilled, 2, "torchrun: exit -9", "1.9"},
    {"Signal 9 (SIGKILL)", "", kKilled, 2, "torchrun: exit -9", "1.9"},
    {"return code = -9", "", kKilled, 2, "DeepSpeed: exit -9"},
    {"signal SIGKILL", "", kKilled, 2, "a killed process"},
    {"<Signals.SIGKILL: 9>", "", kKilled, 2, "a killed process"},
    {"exit code 137", "", kKilled, 2, "exit 137"},
    {"exit code: 137", "", kKilled, 2, "exit 137"},
    {"exited with code 137", "", kKilled, 2, "exit 137"},
    {"exit status 137", "", kKilled, 2, "exit 137"},
    {"Exit Code:    137", "", kKilled, 2, "exit 137"},

    {"UR_RESULT_ERROR_OUT_OF_", "", kSilentDevice, 3, "Intel's runtime"},
    {"PI_ERROR_OUT_OF_", "", kSilentDevice, 3, "Intel's runtime"},
    {"NV_ERR_NO_MEMORY", "", kSilentDevice, 3, "NVIDIA's driver"},
    {"hipErrorOutOfMemory", "", kSilentDevice, 3, "HIP error"},
    {"cudaErrorMemoryAllocation", "", kSilentDevice, 3, "CUDA error: out of memory"},
    {"enough GPU RAM to fit", "", kSilentDevice, 3, "Transformers: dispatched on the CPU"},
    {"ut of memory", "CUDA Error: out", kLibrary, 4, "vLLM: cumem_allocator", "vLLM 0.7"},
    {"ut of memory", "CUDA error 2 at", kSilentDevice, 3, "CUDA error 2"},
    {"ut of memory", "failed with error 2", kSilentDevice, 3, "CUDA error 2"},
    {"ut of memory", "CUDA error: out", kSilentDevice, 3, "CUDA error: out of memory"},
    {"ut of memory", "HIP error: out", kSilentDevice, 3, "HIP error"},
    {"ut of memory", "CUDA out of", kSilentDevice, 3, "PyTorch CUDA, cut off", "1.0"},
    {"ut of memory", "HIP out of", kSilentDevice, 3, "PyTorch HIP, cut off", "1.5"},
    {"ut of memory", "XPU out of", kSilentDevice, 3, "PyTorch XPU, cut off", "2.4"},
    {"ut of memory", "NPU out of", kSilentDevice, 3, "PyTorch NPU, cut off"},
    {"ut of memory", "CUDA failed with error out", kSilentDevice, 3, "CTranslate2"},
    {"ut of memory", "cudaMalloc", kSilentDevice, 3, "CUDA: cudaMalloc"},
    {"ut of memory", "error == cudaSuccess (2", kOther, 3, "Caffe"},
    {"ut of memory", "OutOfMemoryError", kSilentDevice, 2, "PyTorch, cut off"},
    {"ot enough memory", "", kHost, 1, "not enough memory"},

    {"PyTorch CUDA memory summary", "", kTable, 1, "torch.cuda.memory_summary()", "1.4"},
    {"| NVIDIA-SMI ", "", kTable, 1, "nvidia-smi"},
    {"ut of memory", "", kMention, 0, "a mention"},
};

}  // namespace rows
using rows::kForms;

constexpr std::string_view kContext[] = {
    "_ALLOC_CONF",
    "gpu_memory_utilization",
    "gpu-memory-utilization",
    "mem-fraction-static",
    "mem_fraction_static",
    "Model loading took",
    "model weights take",
    "Load weight end",
    "Available KV cache memory",
    "Graph capturing finished",
    "Capture cuda graph end",
    "cudaMallocAsync",
    "memory_fraction(",
    "microsoft-standard",
    "NVIDIA GB10",
    "Radeon 8060S",
    "RYZEN AI MAX",
    "DGX Spark",
};

constexpr struct {
  std::string_view name;
  std::string_view words;
} kQuantities[] = {
    {"requested_bytes", "requested"},
    {"capacity_bytes", "the GPU has"},
    {"device_free_bytes", "free, per the driver"},
    {"allocated_bytes", "in tensors"},
    {"active_bytes", "active"},
    {"reserved_bytes", "held by PyTorch"},
    {"unallocated_bytes", "held by PyTorch, in no tensor"},
    {"private_pool_bytes", "in private pools"},
    {"limit_bytes", "PyTorch may hold"},
    {"process_bytes", "this process, all told"},
    {"other_allocations_bytes", "of this process, not PyTorch's"},
    {"desired_bytes", "the server needs"},
    {"weights_bytes", "weights"},
    {"activation_bytes", "activations at their peak"},
    {"non_torch_bytes", "not through PyTorch"},
    {"cache_bytes", "left for the KV cache"},
    {"cache_needed_bytes", "KV cache of one request"},
    {"graph_bytes", "CUDA graphs"},
    {"host_used_bytes", "in use on the host"},
    {"host_bytes", "the host has"},
    {"resident_bytes", "the killed process had"},
    {"peak_allocated_bytes", "in tensors, at the peak"},
    {"peak_reserved_bytes", "held by PyTorch, at the peak"},
    {"non_releasable_bytes", "in no tensor, and not releasable"},
    {"card_used_bytes", "in use, per nvidia-smi"},
    {"required_bytes", "a block of threads requests"},
    {"allowed_bytes", "a block of threads may have"},
};
static_assert(std::size(kQuantities) == static_cast<size_t>(Quantity::kCount));

constexpr Field kMessageFields[] = {
    {"ried to allocate", Side::kAfter, Quantity::kTried},
    {"Requested", Side::kAfter, Quantity::kTried},
    {"Unable to allocate", Side::kAfter, Quantity::kTried},
    {"while trying to allocate", Side::kAfter, Quantity::kTried},
    {"failed to allocate", Side::kAfter, Quantity::kTried},
    {"Failed to CUDA calloc", Side::kAfter, Quantity::kTried},
    {"requires more system memory (", Side::kAfter, Quantity::kTried},
    {"alloc_buffer: allocating", Side::kAfter, Quantity::kTried},
    {"Cannot allocate", Side::kAfter, Quantity::kTried},
    {"total capacity of", Side::kAfter, Quantity::kCapacity},
    {"total capacty of", Side::kAfter, Quantity::kCapacity},
    {" total capacity", Side::kBefore, Quantity::kCapacity},
    {"Device limit", Side::kAfter, Quantity::kCapacity},
    {"Free memory on device", Side::kSecond, Quantity::kCapacity},
    {" is free", Side::kBefore, Quantity::kFree},
    {" free;", Side::kBefore, Quantity::kFree},
    {"Free (according to CUDA)", Side::kAfter, Quantity::kFree},
    {"Free memory on device", Side::kFirst, Quantity::kFree},
    {" already allocated", Side::kBefore, Quantity::kAllocated},
    {" is allocated by PyTorch", Side::kBefore, Quantity::kAllocated},
    {"Currently allocated", Side::kAfter, Quantity::kAllocated},
    {"MPS allocated", Side::kAfter, Quantity::kAllocated},
    {" current active", Side::kBefore, Quantity::kActive},
    {" reserved in total by PyTorch", Side::kBefore, Quantity::kReserved},
    {" is reserved by PyTorch but unallocated", Side::kBefore, Quantity::kUnallocated},
    {" cached", Side::kBefore, Quantity::kUnallocated},
    {" allocated in private pools", Side::kBefore, Quantity::kPrivatePools},
    {" allowed;", Side::kBefore, Quantity::kLimit},
    {"user-supplied memory fraction)", Side::kAfter, Quantity::kLimit},
    {"max allowed", Side::kAfter, Quantity::kLimit},
    {"this process has", Side::kAfter, Quantity::kOwnProcess},
    {"other allocations", Side::kAfter, Quantity::kOtherAllocations},
    {"GPU memory utilization (", Side::kSecond, Quantity::kDesired},
    {" KV cache is needed", Side::kBefore, Quantity::kCacheNeeded},
    {"available KV cache memory (", Side::kAfter, Quantity::kCache},
    {"was running was", Side::kFirst, Quantity::kHostUsed},
    {"was running was", Side::kSecond, Quantity::kHostTotal},
    {"anon-rss:", Side::kAfter, Quantity::kResident},
    {"Required: ", Side::kBytes, Quantity::kRequired},
    {"Hardware limit: ", Side::kBytes, Quantity::kAllowed},
};

constexpr NumberField kMessageNumbers[] = {
    {"GPU memory utilization (", Number::kUtilization},
    {"max seq len (", Number::kMaxLength},
    {"stored in KV cache (", Number::kCacheTokens},
    {"estimated maximum model length is ", Number::kFittingLength},
    {"warming up sampler with ", Number::kMaxSequences},
};

constexpr Field kContextFields[] = {
    {"Model loading took", Side::kAfter, Quantity::kWeights},
    {"model weights take", Side::kAfter, Quantity::kWeights},
    {"activation peak memory takes", Side::kAfter, Quantity::kActivations},
    {"non_torch_memory takes", Side::kAfter, Quantity::kNonTorch},
    {"reserved for KV Cache is", Side::kAfter, Quantity::kCache},
    {"Available KV cache memory", Side::kAfter, Quantity::kCache},
    {"secs, took", Side::kAfter, Quantity::kGraphs},
};

constexpr NumberField kContextNumbers[] = {
    {"gpu_memory_utilization", Number::kUtilization},
    {"gpu-memory-utilization", Number::kUtilization},
    {"mem-fraction-static", Number::kUtilization},
    {"mem_fraction_static", Number::kUtilization},
    {"train_batch_size", Number::kBatch},
    {"batch_size", Number::kBatch},
    {"batch-size", Number::kBatch},
    {"batch size", Number::kBatch},
};

constexpr bool AnchorsAreLong() {
  for (const Form& form : kForms) {
    if (form.anchor.size() < kShortestAnchor && form.kind != FormKind::kKilled) return false;
  }
  for (const std::string_view anchor : kContext) {
    if (anchor.size() < kShortestAnchor) return false;
  }
  return true;
}
static_assert(AnchorsAreLong());

}  // namespace

absl::Span<const Form> Forms() { return kForms; }
absl::Span<const std::string_view> ContextAnchors() { return kContext; }
absl::Span<const Field> MessageFields() { return kMessageFields; }
absl::Span<const NumberField> MessageNumbers() { return kMessageNumbers; }
absl::Span<const Field> ContextFields() { return kContextFields; }
absl::Span<const NumberField> ContextNumbers() { return kContextNumbers; }

std::string_view QuantityName(Quantity quantity) {
  return kQuantities[static_cast<size_t>(quantity)].name;
}
std::string_view QuantityWords(Quantity quantity) {
  return kQuantities[static_cast<size_t>(quantity)].words;
}

}  // namespace memreplay

#include "report/message/forms.h"

namespace memreplay {
namespace {

constexpr Form kForms[] = {
    // A server's own words come before the allocator's figures that they quote.
    {"warming up sampler", "", FormKind::kServing, 5, "vLLM: warming up the sampler", "vLLM 0.8",
     ""},
    {"Free memory on device", "", FormKind::kServing, 5, "vLLM: free memory at the start",
     "vLLM 0.9", ""},
    {"No available memory for the cache blocks", "", FormKind::kServing, 5,
     "vLLM: no memory for the KV cache", "vLLM 0.2", ""},
    {"can be stored in KV cache", "", FormKind::kServing, 5,
     "vLLM: KV cache shorter than the model", "vLLM 0.2", "max seq len"},
    {"KV cache is needed", "", FormKind::kServing, 5, "vLLM: KV cache smaller than one request",
     "vLLM 0.8", "max seq len"},
    {"Error in memory profiling", "", FormKind::kServing, 5, "vLLM: memory changed while profiling",
     "vLLM 0.5", ""},
    {"ncrease --mem-fraction-static", "", FormKind::kServing, 5,
     "SGLang: no memory for the KV cache", "", ""},
    {"apture cuda graph failed", "ut of memory", FormKind::kServing, 5, "SGLang: capturing graphs",
     "", ""},
    {"apture CUDA graph failed", "ut of memory", FormKind::kServing, 5, "SGLang: capturing graphs",
     "", ""},
    {"Prefill out of memory", "", FormKind::kServing, 5, "SGLang: prefill", "", ""},
    {"Decode out of memory", "", FormKind::kServing, 5, "SGLang: decode", "", ""},
    {"ot enough memory to handle", "prefill tokens", FormKind::kServing, 5,
     "Text Generation Inference: prefill", "", ""},

    {"more than 1EB memory", "", FormKind::kBadSize, 5, "PyTorch: more than 1EB", "2.0", ""},
    {"out of resource: ", "", FormKind::kKernel, 5, "Triton: out of resource", "", ""},
    {"OutOfResources", "", FormKind::kKernel, 4, "Triton: OutOfResources", "", ""},
    {"invalid configuration argument", "", FormKind::kKernel, 4, "CUDA: invalid configuration", "",
     ""},

    {"ried to allocate", "DefaultCPUAllocator", FormKind::kHost, 4, "PyTorch on the CPU", "1.0",
     "DefaultCPUAllocator"},
    {"ried to allocate", "Buy new RAM", FormKind::kHost, 4, "PyTorch on the CPU", "0.1", ""},
    {"ried to allocate", "MPS backend", FormKind::kMps, 4, "PyTorch MPS", "1.13", "MPS backend"},
    {"ried to allocate", "memory block with size larger", FormKind::kBlockLimit, 4,
     "Intel's extension: block above 4 GB", "IPEX 2.1", ""},
    {"ried to allocate", "XPU out of memory", FormKind::kDevice, 4, "PyTorch XPU", "2.4", ""},
    {"ried to allocate", "NPU out of memory", FormKind::kDevice, 4, "PyTorch NPU", "torch_npu 1.8",
     ""},
    {"ried to allocate", "HIP out of memory", FormKind::kDevice, 4, "PyTorch HIP", "1.5", ""},
    {"ried to allocate", "ut of memory", FormKind::kDevice, 4, "PyTorch CUDA", "1.0", ""},
    {"ried to allocate", "GPU ", FormKind::kDevice, 4, "PyTorch CUDA", "1.0", ""},
    {"ried to allocate", "", FormKind::kDevice, 3, "PyTorch, cut off", "1.0", ""},
    {"would exceed allowed memory", "", FormKind::kAsync, 4, "PyTorch under cudaMallocAsync",
     "1.12", ""},

    {"MPS backend out of memory", "", FormKind::kMps, 4, "PyTorch MPS", "1.13", ""},
    {"NVML_SUCCESS == ", "", FormKind::kSilentDevice, 4, "PyTorch: NVML assertion", "2.1", ""},
    {"THCudaCheck FAIL", "error=2", FormKind::kSilentDevice, 4, "PyTorch before 1.0", "0.1", ""},
    {"cuda runtime error (2)", "", FormKind::kSilentDevice, 4, "PyTorch before 1.0", "0.1", ""},
    {"CUDA driver error: out of memory", "", FormKind::kSilentDevice, 4,
     "PyTorch: CUDA driver error", "2.1", ""},
    {"CUDA_ERROR_OUT_OF_MEMORY", "pinned host", FormKind::kPinned, 4, "TensorFlow: pinned memory",
     "", ""},
    {"CUDA_ERROR_OUT_OF_MEMORY", "on host:", FormKind::kPinned, 4, "TensorFlow: pinned memory", "",
     ""},
    {"CUDA_ERROR_OUT_OF_MEMORY", "", FormKind::kOther, 3, "TensorFlow or the CUDA driver", "", ""},
    {"OOM when allocating tensor", "", FormKind::kOther, 4, "TensorFlow", "", ""},
    {"RESOURCE_EXHAUSTED", "", FormKind::kOther, 4, "JAX or TensorFlow", "", ""},
    {"ResourceExhaustedError", "", FormKind::kOther, 3, "TensorFlow", "", ""},

    {"cumem_allocator.cpp", "ut of memory", FormKind::kLibrary, 5, "vLLM: cumem_allocator",
     "vLLM 0.7", ""},
    {"NCCL WARN Cuda failure", "ut of memory", FormKind::kLibrary, 4, "NCCL", "", ""},
    {"Cuda failure 2", "", FormKind::kLibrary, 4, "NCCL", "", ""},
    {"Failed to CUDA calloc", "", FormKind::kLibrary, 4, "NCCL", "", ""},
    {"unhandled cuda error", "", FormKind::kLibrary, 2, "NCCL: unhandled cuda error", "", ""},
    {"CUBLAS_STATUS_ALLOC_FAILED", "", FormKind::kLibrary, 4, "cuBLAS", "", ""},
    {"CUBLAS_STATUS_NOT_INITIALIZED", "", FormKind::kLibrary, 4, "cuBLAS", "", ""},
    {"HIPBLAS_STATUS_ALLOC_FAILED", "", FormKind::kLibrary, 4, "hipBLAS", "", ""},
    {"CUDNN_STATUS_ALLOC_FAILED", "", FormKind::kLibrary, 4, "cuDNN", "", ""},
    {"CUDNN_STATUS_NOT_INITIALIZED", "", FormKind::kLibrary, 4, "cuDNN", "", ""},
    {"CUSOLVER_STATUS_ALLOC_FAILED", "", FormKind::kLibrary, 4, "cuSOLVER", "", ""},
    {"CUFFT_ALLOC_FAILED", "", FormKind::kLibrary, 4, "cuFFT", "", ""},

    {"cudaHostAlloc", "ut of memory", FormKind::kPinned, 4, "CUDA: pinned memory", "", ""},
    {"cudaHostRegister", "ut of memory", FormKind::kPinned, 4, "CUDA: pinned memory", "", ""},
    {"pinned host memory", "", FormKind::kPinned, 4, "pinned memory", "", ""},

    {"killed by signal: Bus error", "", FormKind::kSharedMemory, 4, "DataLoader: bus error", "0.4",
     ""},
    {"bus error encountered in worker", "", FormKind::kSharedMemory, 4, "DataLoader: bus error",
     "0.4", ""},
    {"nable to open shared memory object", "", FormKind::kSharedMemory, 4, "PyTorch: shared memory",
     "", ""},
    {"unable to write to file </torch_", "", FormKind::kSharedMemory, 4, "PyTorch: shared memory",
     "", ""},
    {"nable to allocate shared memory", "", FormKind::kSharedMemory, 4, "PyTorch: shared memory",
     "", ""},
    {"creating shared memory segment", "", FormKind::kSharedMemory, 4, "NCCL: shared memory", "",
     ""},
    {"No space left on device", "/dev/shm", FormKind::kSharedMemory, 4, "shared memory", "", ""},
    {"No space left on device", "torch_", FormKind::kSharedMemory, 4, "shared memory", "", ""},

    {"DefaultCPUAllocator", "", FormKind::kHost, 4, "PyTorch on the CPU", "1.0", ""},
    {"posix_memalign(&data", "", FormKind::kHost, 4, "PyTorch on the CPU", "1.0", ""},
    {"running low on memory", "", FormKind::kHost, 5, "Ray: the node's memory", "Ray 2.0", ""},
    {"due to memory pressure (OOM)", "", FormKind::kHost, 4, "Ray: the node's memory", "Ray 2.2",
     ""},
    {"RayOutOfMemoryError", "", FormKind::kHost, 4, "Ray: the node's memory", "Ray 0.6", ""},
    {"Unable to allocate ", "for an array", FormKind::kHost, 4, "NumPy", "", ""},
    {"Cannot allocate memory", "", FormKind::kHost, 3, "the system: errno 12", "", ""},
    {"std::bad_alloc", "", FormKind::kHost, 3, "C++: bad_alloc", "", ""},
    {"ut of memory: Killed process", "", FormKind::kKilled, 4, "the kernel's OOM killer", "", ""},
    {"ut of memory: Kill process", "", FormKind::kKilled, 4, "the kernel's OOM killer", "", ""},
    {"Killed process ", "anon-rss", FormKind::kKilled, 4, "the kernel's OOM killer", "", ""},
    {"oom-kill:", "", FormKind::kKilled, 3, "the kernel's OOM killer", "", ""},
    {"OOMKilled", "", FormKind::kKilled, 3, "Kubernetes: OOMKilled", "", ""},
    {"oom_kill event", "", FormKind::kKilled, 3, "Slurm: oom_kill", "", ""},
    {"killed by signal: Killed", "", FormKind::kKilled, 3, "DataLoader: worker killed", "0.4", ""},
    {"exitcode: -9", "", FormKind::kKilled, 2, "torchrun: exit -9", "1.9", ""},
    {"exitcode  : -9", "", FormKind::kKilled, 2, "torchrun: exit -9", "1.9", ""},
    {"Signal 9 (SIGKILL)", "", FormKind::kKilled, 2, "torchrun: exit -9", "1.9", ""},
    {"return code = -9", "", FormKind::kKilled, 2, "DeepSpeed: exit -9", "", ""},
    {"signal SIGKILL", "", FormKind::kKilled, 2, "a killed process", "", ""},
    {"<Signals.SIGKILL: 9>", "", FormKind::kKilled, 2, "a killed process", "", ""},
    {"exit code 137", "", FormKind::kKilled, 2, "exit 137", "", ""},
    {"exit code: 137", "", FormKind::kKilled, 2, "exit 137", "", ""},
    {"exited with code 137", "", FormKind::kKilled, 2, "exit 137", "", ""},
    {"exit status 137", "", FormKind::kKilled, 2, "exit 137", "", ""},
    {"Exit Code:    137", "", FormKind::kKilled, 2, "exit 137", "", ""},

    {"UR_RESULT_ERROR_OUT_OF_", "", FormKind::kSilentDevice, 3, "Intel's runtime", "", ""},
    {"PI_ERROR_OUT_OF_", "", FormKind::kSilentDevice, 3, "Intel's runtime", "", ""},
    {"NV_ERR_NO_MEMORY", "", FormKind::kSilentDevice, 3, "NVIDIA's driver", "", ""},
    {"hipErrorOutOfMemory", "", FormKind::kSilentDevice, 3, "HIP error", "", ""},
    {"cudaErrorMemoryAllocation", "", FormKind::kSilentDevice, 3, "CUDA error: out of memory", "",
     ""},
    {"enough GPU RAM to fit", "", FormKind::kSilentDevice, 3, "Transformers: dispatched on the CPU",
     "", ""},
    {"ut of memory", "CUDA Error: out", FormKind::kLibrary, 4, "vLLM: cumem_allocator", "vLLM 0.7",
     ""},
    {"ut of memory", "CUDA error 2 at", FormKind::kSilentDevice, 3, "CUDA error 2", "", ""},
    {"ut of memory", "failed with error 2", FormKind::kSilentDevice, 3, "CUDA error 2", "", ""},
    {"ut of memory", "CUDA error: out", FormKind::kSilentDevice, 3, "CUDA error: out of memory", "",
     ""},
    {"ut of memory", "HIP error: out", FormKind::kSilentDevice, 3, "HIP error", "", ""},
    {"ut of memory", "CUDA out of", FormKind::kSilentDevice, 3, "PyTorch CUDA, cut off", "1.0", ""},
    {"ut of memory", "HIP out of", FormKind::kSilentDevice, 3, "PyTorch HIP, cut off", "1.5", ""},
    {"ut of memory", "XPU out of", FormKind::kSilentDevice, 3, "PyTorch XPU, cut off", "2.4", ""},
    {"ut of memory", "NPU out of", FormKind::kSilentDevice, 3, "PyTorch NPU, cut off", "", ""},
    {"ut of memory", "CUDA failed with error out", FormKind::kSilentDevice, 3, "CTranslate2", "",
     ""},
    {"ut of memory", "cudaMalloc", FormKind::kSilentDevice, 3, "CUDA: cudaMalloc", "", ""},
    {"ut of memory", "error == cudaSuccess (2", FormKind::kOther, 3, "Caffe", "", ""},
    {"ut of memory", "OutOfMemoryError", FormKind::kSilentDevice, 2, "PyTorch, cut off", "", ""},
    {"ot enough memory", "", FormKind::kHost, 1, "not enough memory", "", ""},

    {"PyTorch CUDA memory summary", "", FormKind::kTable, 1, "torch.cuda.memory_summary()", "1.4",
     ""},
    {"| NVIDIA-SMI ", "", FormKind::kTable, 1, "nvidia-smi", "", ""},
    {"ut of memory", "", FormKind::kMention, 0, "a mention", "", ""},
};

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
    if (form.anchor.size() < kShortestAnchor) return false;
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

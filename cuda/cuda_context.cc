#include "cuda/cuda_context.h"

#include <array>
#include <utility>

#include "absl/strings/str_format.h"
#include "cuda/held_pages.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr Bytes kUnit = MiB(2);  // SimulatedDevice's unit

}  // namespace

std::string OfBytes(Bytes size) { return StrCat("of ", size.value(), " bytes"); }

std::string OfBytesAt(Bytes size, Address address) {
  return absl::StrFormat("of %d bytes at 0x%x", size.value(), address.value());
}

absl::StatusOr<std::unique_ptr<CudaContext>> CudaContext::Create(const CudaDriver& driver,
                                                                 int ordinal) {
  const CudaEntryPoints& api = driver.api();
  if (ordinal < 0 || ordinal >= driver.device_count()) {
    return absl::InvalidArgumentError(
        StrCat("GPU ", ordinal, ": the driver reports ", driver.device_count(),
               driver.device_count() == 1 ? " GPU, number 0" : " GPUs, numbered from 0"));
  }
  CUdevice device = 0;
  if (const CUresult result = api.cuDeviceGet(&device, ordinal); result != CUDA_SUCCESS) {
    return driver.Error(result, "cuDeviceGet", StrCat("of GPU ", ordinal));
  }
  std::unique_ptr<CudaContext> context(new CudaContext(driver, device));
  CudaCard& card = context->card_;
  card.ordinal = ordinal;
  const std::string of_gpu = StrCat("of GPU ", ordinal);

  std::array<char, 256> name = {};
  size_t total = 0;
  if (!context->Succeeded(api.cuDeviceGetName(name.data(), name.size(), device), "cuDeviceGetName",
                          of_gpu) ||
      !context->Succeeded(api.cuDeviceTotalMem(&total, device), "cuDeviceTotalMem", of_gpu)) {
    return context->status_;
  }
  name.back() = '\0';
  card.name = name.data();
  card.total = Bytes(total);

  int virtual_memory = 0;
  int memory_pools = 0;
  const std::pair<CUdevice_attribute, int*> attributes[] = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &card.major},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &card.minor},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &card.multiprocessors},
      {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, &virtual_memory},
      {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, &memory_pools}};
  for (const auto& [attribute, value] : attributes) {
    if (!context->Succeeded(api.cuDeviceGetAttribute(value, attribute, device),
                            "cuDeviceGetAttribute", of_gpu)) {
      return context->status_;
    }
  }
  card.has_memory_pools = memory_pools != 0;
  if (virtual_memory == 0) {
    return absl::FailedPreconditionError(
        StrCat("GPU ", ordinal, " (", card.name, ") has no virtual memory management"));
  }

  CUcontext primary = nullptr;
  if (!context->Succeeded(api.cuDevicePrimaryCtxRetain(&primary, device),
                          "cuDevicePrimaryCtxRetain", of_gpu)) {
    return context->status_;
  }
  context->retained_ = true;
  if (!context->Succeeded(api.cuCtxSetCurrent(primary), "cuCtxSetCurrent", of_gpu)) {
    return context->status_;
  }
  size_t granularity = 0;
  const CUmemAllocationProp properties = PageProperties(*context);
  if (!context->Succeeded(api.cuMemGetAllocationGranularity(&granularity, &properties,
                                                            CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                          "cuMemGetAllocationGranularity", of_gpu)) {
    return context->status_;
  }
  if (granularity == 0 || kUnit.value() % granularity != 0) {
    return absl::FailedPreconditionError(StrCat("GPU ", ordinal, " (", card.name,
                                                "): expected pages that divide 2 MiB, found ",
                                                granularity, " bytes"));
  }
  card.granularity = Bytes(granularity);
  return context;
}

CudaContext::~CudaContext() {
  for (CUstream stream : streams_) {
    if (stream != nullptr) api().cuStreamDestroy(stream);
  }
  if (retained_) api().cuDevicePrimaryCtxRelease(device_);
}

Bytes CudaContext::FreeMemory() {
  size_t free = 0;
  size_t total = 0;
  if (!Succeeded(Call(DriverCall::kGetInfo, Bytes(0), api().cuMemGetInfo, &free, &total),
                 DriverCall::kGetInfo)) {
    return Bytes(0);
  }
  return Bytes(free);
}

CUstream CudaContext::Stream(uint32_t index) {
  if (index >= streams_.size()) streams_.resize(index + 1);
  CUstream& stream = streams_[index];
  if (stream == nullptr) {
    const CUresult result = Call(DriverCall::kStreamCreate, Bytes(0), api().cuStreamCreate, &stream,
                                 CU_STREAM_NON_BLOCKING);
    if (!Succeeded(result, DriverCall::kStreamCreate, StrCat("of stream ", index))) {
      stream = nullptr;
    }
  }
  return stream;
}

bool CudaContext::Succeeded(CUresult result, std::string_view call, std::string_view detail) {
  if (result == CUDA_SUCCESS) return true;
  if (status_.ok()) status_ = driver_.Error(result, call, detail);
  return false;
}

}  // namespace memreplay

#include "cuda/cuda_context.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_format.h"
#include "trace/value/median.h"
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
  const bool is_known = Do(DriverCall::kGetInfo, Bytes(0), "", api().cuMemGetInfo, &free, &total);
  return is_known ? Bytes(free) : Bytes(0);
}

CUstream CudaContext::Stream(uint32_t index) {
  if (index >= streams_.size()) streams_.resize(index + 1);
  CUstream& stream = streams_[index];
  if (stream == nullptr && !Do(DriverCall::kStreamCreate, Bytes(0), StrCat("of stream ", index),
                               api().cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING)) {
    stream = nullptr;
  }
  return stream;
}

bool CudaContext::Succeeded(CUresult result, std::string_view call, std::string_view detail) {
  if (result == CUDA_SUCCESS) return true;
  if (status_.ok()) status_ = driver_.Error(result, call, detail);
  return false;
}

CUmemAllocationProp PageProperties(const CudaContext& context) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = context.card().ordinal;
  return properties;
}

HeldPages::~HeldPages() { ReleaseAll(); }

bool HeldPages::Take(Bytes size) {
  const CUmemAllocationProp properties = PageProperties(context_);
  CUmemGenericAllocationHandle handle = 0;
  const CUresult result = context_.Call(DriverCall::kCreate, size, context_.api().cuMemCreate,
                                        &handle, size.value(), &properties, 0);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) return false;
  if (!context_.Succeeded(result, DriverCall::kCreate, OfBytes(size))) return false;
  pieces_.push_back({handle, size});
  size_ += size;
  return true;
}

bool HeldPages::Give() {
  const Piece piece = pieces_.back();
  if (!context_.Do(DriverCall::kRelease, piece.size, OfBytes(piece.size),
                   context_.api().cuMemRelease, piece.handle)) {
    return false;
  }
  pieces_.pop_back();
  size_ -= piece.size;
  return true;
}

void HeldPages::SetSize(Bytes size) {
  const Bytes page = context_.card().granularity;
  const Bytes wanted = RoundUp(size, page);
  while (size_ > wanted) {
    if (!Give()) return;
  }
  // Takes the largest piece available, then smaller ones.
  for (Bytes piece = wanted - size_; size_ < wanted && piece >= page && context_.status().ok();) {
    if (!Take(std::min(piece, wanted - size_))) piece = RoundDown(Bytes(piece.value() / 2), page);
  }
}

void HeldPages::LeaveFree(Bytes free) {
  const Bytes page = context_.card().granularity;
  // Repeats, since a creation may cost the driver more or less than its size.
  for (int round = 0; round < 8 && context_.status().ok(); ++round) {
    const Bytes now = context_.FreeMemory();
    if (now < free + page) return;
    SetSize(size_ + RoundDown(now - free, page));
  }
}

void HeldPages::ReleaseAll() {
  while (!pieces_.empty() && Give()) {
  }
}

std::string_view DriverCallName(DriverCall call) {
  static constexpr std::string_view kNames[] = {
#define MEMREPLAY_NAME(kind, name) #name,
      MEMREPLAY_DRIVER_CALLS(MEMREPLAY_NAME)
#undef MEMREPLAY_NAME
  };
  return kNames[static_cast<size_t>(call)];
}

int64_t DriverCallTimes::median_ns() const { return Median(sample); }

void DriverCallLog::Add(DriverCall call, Bytes bytes, int64_t nanoseconds, bool succeeded) {
  DriverCallTimes& times = rows_[{call, bytes}];
  times.min_ns = times.calls == 0 ? nanoseconds : std::min(times.min_ns, nanoseconds);
  times.max_ns = std::max(times.max_ns, nanoseconds);
  ++times.calls;
  if (!succeeded) ++times.refused;
  times.total_ns += nanoseconds;
  if (times.sample.size() < DriverCallTimes::kSample) times.sample.push_back(nanoseconds);
}

DriverCallTimes DriverCallLog::Total(DriverCall call) const {
  DriverCallTimes total;
  for (auto row = rows_.lower_bound({call, Bytes(0)}); row != rows_.end(); ++row) {
    if (row->first.first != call) break;
    const DriverCallTimes& times = row->second;
    total.min_ns = total.calls == 0 ? times.min_ns : std::min(total.min_ns, times.min_ns);
    total.max_ns = std::max(total.max_ns, times.max_ns);
    total.calls += times.calls;
    total.refused += times.refused;
    total.total_ns += times.total_ns;
  }
  return total;
}

}  // namespace memreplay

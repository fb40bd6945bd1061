#include "cuda/cuda_device.h"

#include <algorithm>

#include "trace/value/check.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr Bytes kUnit = MiB(2);

Bytes WholeUnits(Bytes size) { return RoundUp(std::max(size, Bytes(1)), kUnit); }

// The maximum number of events of one stream that nothing has waited for. Beyond it, the oldest are
// waited for and reused.
constexpr size_t kMaxPending = 1024;

uint64_t HowMany(CudaDevice& device, Bytes size, int repeats) {
  return std::min(static_cast<uint64_t>(repeats), Bytes(device.FreeMemory().value() / 2) / size);
}

uint64_t MeasureSegments(CudaDevice& device, Bytes size, int repeats) {
  std::vector<Address> segments;
  for (uint64_t left = HowMany(device, size, repeats); left > 0; --left) {
    const std::optional<Address> segment = device.AllocateSegment(size);
    if (!segment.has_value()) break;
    segments.push_back(*segment);
  }
  for (const Address segment : segments) device.FreeSegment(segment, size);
  return segments.size();
}

uint64_t MeasurePages(CudaDevice& device, Bytes page, int repeats) {
  const uint64_t pages = HowMany(device, page, repeats);
  if (pages == 0) return 0;
  const Bytes size = page * pages;
  const std::optional<Address> range = device.ReserveRange(size);
  if (!range.has_value()) return 0;
  const bool mapped = device.MapPages(*range, size, page);
  if (mapped) device.UnmapPages(*range, size, page);
  device.ReleaseRange(*range, size);
  return mapped ? pages : 0;
}

}  // namespace

CudaDevice::CudaDevice(CudaContext& context, const CudaDeviceOptions& options)
    : context_(context),
      options_(options),
      total_(options.capacity.value_or(context.card().total)),
      streams_(context, options.explicit_completion),
      ballast_(context),
      outside_pages_(context) {}

absl::StatusOr<std::unique_ptr<CudaDevice>> CudaDevice::Create(CudaContext& context,
                                                               const CudaDeviceOptions& options) {
  RETURN_IF_ERROR(context.status());
  std::unique_ptr<CudaDevice> device(new CudaDevice(context, options));
  if (options.capacity.has_value()) {
    const Bytes free = context.FreeMemory();
    RETURN_IF_ERROR(context.status());
    if (*options.capacity > free) {
      return absl::FailedPreconditionError(
          StrCat("GPU ", context.card().ordinal, " (", context.card().name, "): a capacity of ",
                 options.capacity->value(), " bytes was requested, but only ", free.value(),
                 " bytes are free of ", context.card().total.value()));
    }
    if (options.by == CapacityBy::kBallast) device->ballast_.LeaveFree(*options.capacity);
    RETURN_IF_ERROR(context.status());
  }
  return device;
}

CudaDevice::~CudaDevice() {
  // Tries once more to release what the first call could not.
  if (!ReleaseEverything().ok()) (void)ReleaseEverything();
}

bool CudaDevice::Refuse(Refusal why) {
  ++refusals_.by[static_cast<size_t>(why)];
  refusals_.last = why;
  return false;
}

bool CudaDevice::Admit(Bytes units) {
  if (!status().ok()) return Refuse(Refusal::kFailed);
  if (failures_ != 0) {
    --failures_;
    return Refuse(Refusal::kInjected);
  }
  if (units > context_.card().total) return Refuse(Refusal::kLimit);
  if (options_.capacity.has_value() && options_.by == CapacityBy::kLimit) {
    const Bytes taken = used_ + outside_;
    if (taken >= total_ || units > total_ - taken) return Refuse(Refusal::kLimit);
  }
  return true;
}

bool CudaDevice::Granted(CUresult result, DriverCall call, Address address, Bytes size) {
  if (result == CUDA_SUCCESS) return true;
  if (result == CUDA_ERROR_OUT_OF_MEMORY) return Refuse(Refusal::kDriver);
  context_.Succeeded(result, call, address.is_null() ? OfBytes(size) : OfBytesAt(size, address));
  return Refuse(Refusal::kFailed);
}

void CudaDevice::CountPool(Bytes reserved) {
  used_ += reserved;
  used_ -= pool_;
  pool_ = reserved;
}

Bytes CudaDevice::FreeMemory() {
  const Bytes free = context_.FreeMemory();
  if (!options_.capacity.has_value() || options_.by != CapacityBy::kLimit) return free;
  const Bytes taken = used_ + outside_;
  return taken >= total_ ? Bytes(0) : std::min(free, total_ - taken);
}

Bytes CudaDevice::DriverUsed() {
  const Bytes used = context_.card().total - context_.FreeMemory();
  return used - std::min(used, ballast_.size());
}

std::optional<Address> CudaDevice::AllocateSegment(Bytes size) {
  ++calls_.segment_allocs;
  const Bytes units = size > context_.card().total ? size : WholeUnits(size);
  if (!Admit(units)) return std::nullopt;
  CUdeviceptr address = 0;
  const CUresult result =
      context_.Call(DriverCall::kMemAlloc, size, context_.api().cuMemAlloc, &address, size.value());
  if (!Granted(result, DriverCall::kMemAlloc, Address(), size)) return std::nullopt;
  segments_.emplace(Address(address), size);
  used_ += units;
  return Address(address);
}

void CudaDevice::FreeSegment(Address address, Bytes size) {
  ++calls_.segment_frees;
  const auto segment = segments_.find(address);
  MEMREPLAY_CHECK(segment != segments_.end(), "free of an address that is no segment");
  MEMREPLAY_CHECK(segment->second == size, "segment freed with another size than allocated");
  if (!context_.Do(DriverCall::kMemFree, size, OfBytesAt(size, address), context_.api().cuMemFree,
                   address.value())) {
    return;
  }
  segments_.erase(segment);
  used_ -= WholeUnits(size);
}

std::optional<Address> CudaDevice::ReserveRange(Bytes size) {
  if (!status().ok()) return std::nullopt;
  const Bytes whole = WholeUnits(size);
  CUdeviceptr address = 0;
  if (!context_.Do(DriverCall::kAddressReserve, whole, OfBytes(whole),
                   context_.api().cuMemAddressReserve, &address, whole.value(), kUnit.value(), 0,
                   0)) {
    return std::nullopt;
  }
  ranges_.emplace(Address(address), whole);
  return Address(address);
}

void CudaDevice::ReleaseRange(Address address, Bytes size) {
  const auto range = ranges_.find(address);
  MEMREPLAY_CHECK(range != ranges_.end() && range->second == WholeUnits(size),
                  "release of an address range that is not reserved");
  if (context_.Do(DriverCall::kAddressFree, range->second, OfBytesAt(range->second, address),
                  context_.api().cuMemAddressFree, address.value(), range->second.value())) {
    ranges_.erase(range);
  }
}

bool CudaDevice::MapPage(Address address, Bytes size) {
  if (!Admit(WholeUnits(size))) return false;
  const CUmemAllocationProp properties = PageProperties(context_);
  CUmemGenericAllocationHandle handle = 0;
  const CUresult created = context_.Call(DriverCall::kCreate, size, context_.api().cuMemCreate,
                                         &handle, size.value(), &properties, 0);
  if (!Granted(created, DriverCall::kCreate, Address(), size)) return false;
  const auto [page, is_new] = pages_.emplace(address, Page{.size = size, .handle = handle});
  MEMREPLAY_CHECK(is_new, "a page is mapped where one is mapped");
  used_ += WholeUnits(size);

  const CUresult mapped = context_.Call(DriverCall::kMap, size, context_.api().cuMemMap,
                                        address.value(), size.value(), 0, handle, 0);
  bool granted = Granted(mapped, DriverCall::kMap, address, size);
  if (granted) {
    page->second.is_mapped = true;
    CUmemAccessDesc access = {};
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    const CUresult accessible =
        context_.Call(DriverCall::kSetAccess, size, context_.api().cuMemSetAccess, address.value(),
                      size.value(), &access, 1);
    granted = Granted(accessible, DriverCall::kSetAccess, address, size);
  }
  if (!granted) DropPage(page);
  return granted;
}

bool CudaDevice::DropPage(absl::btree_map<Address, Page>::iterator page) {
  const auto [address, held] = *page;
  const std::string of_page = OfBytesAt(held.size, address);
  if (held.is_mapped) {
    if (!context_.Do(DriverCall::kUnmap, held.size, of_page, context_.api().cuMemUnmap,
                     address.value(), held.size.value())) {
      return false;
    }
    page->second.is_mapped = false;
  }
  if (!context_.Do(DriverCall::kRelease, held.size, of_page, context_.api().cuMemRelease,
                   held.handle)) {
    return false;
  }
  used_ -= WholeUnits(held.size);
  pages_.erase(page);
  return true;
}

bool CudaDevice::MapPages(Address address, Bytes size, Bytes page) {
  MEMREPLAY_CHECK(page.value() != 0 && size.value() % page.value() == 0,
                  "mapping that is not made of whole pages");
  const Address end = address + size;
  for (Address at = address; at < end; at = at + page) {
    ++calls_.maps;
    if (MapPage(at, page)) continue;
    while (at > address) {
      at = at - page;
      DropPage(pages_.find(at));
    }
    return false;
  }
  return true;
}

void CudaDevice::UnmapPages(Address address, Bytes size, Bytes page) {
  const Address end = address + size;
  for (Address at = address; at < end; at = at + page) {
    ++calls_.unmaps;
    const auto mapped = pages_.find(at);
    MEMREPLAY_CHECK(mapped != pages_.end() && mapped->second.size == page,
                    "unmapping of a page that is not mapped");
    DropPage(mapped);
  }
}

void CudaDevice::Synchronize(const StreamEvent& event) {
  ++calls_.waits;
  streams_.Synchronize(event);
}

void CudaDevice::TakeOutside(Bytes size) {
  outside_ += size;
  outside_pages_.SetSize(outside_);
}

void CudaDevice::ReturnOutside(Bytes size) {
  outside_ -= std::min(size, outside_);
  outside_pages_.SetSize(outside_);
}

absl::Status CudaDevice::ReleaseEverything() {
  // Skips what the driver fails to release.
  const auto each = [](auto& held, const auto& release) {
    for (auto it = held.begin(); it != held.end();) {
      const Address address = it->first;
      release(it);
      it = held.upper_bound(address);
    }
  };
  each(pages_, [this](auto page) { DropPage(page); });
  each(ranges_, [this](auto range) { ReleaseRange(range->first, range->second); });
  each(segments_, [this](auto segment) { FreeSegment(segment->first, segment->second); });
  outside_pages_.ReleaseAll();
  ballast_.ReleaseAll();
  outside_ = Bytes(0);
  return status();
}

StreamProgress::~StreamProgress() {
  for (const Stream& stream : streams_) {
    for (const Pending& pending : stream.pending) context_.api().cuEventDestroy(pending.event);
  }
  for (CUevent event : spare_) context_.api().cuEventDestroy(event);
}

StreamProgress::Stream& StreamProgress::At(uint32_t stream) {
  if (stream >= streams_.size()) streams_.resize(stream + 1);
  return streams_[stream];
}

StreamEvent StreamProgress::Record(uint32_t index) {
  Stream& stream = At(index);
  const StreamEvent recorded = {.stream = index, .ticket = ++stream.recorded};
  CUstream const work = context_.Stream(index);
  if (work == nullptr) return recorded;
  if (stream.pending.size() >= kMaxPending) {
    WaitFor(stream, stream.pending[kMaxPending / 2].ticket);
  }
  CUevent event = nullptr;
  if (!spare_.empty()) {
    event = spare_.back();
    spare_.pop_back();
  } else if (!context_.Do(DriverCall::kEventCreate, Bytes(0), "", context_.api().cuEventCreate,
                          &event, CU_EVENT_DISABLE_TIMING)) {
    return recorded;
  }
  if (!context_.Do(DriverCall::kEventRecord, Bytes(0), StrCat("on stream ", index),
                   context_.api().cuEventRecord, event, work)) {
    spare_.push_back(event);
    return recorded;
  }
  stream.pending.push_back({recorded.ticket, event});
  return recorded;
}

void StreamProgress::WaitFor(Stream& stream, uint64_t ticket) {
  if (ticket <= stream.waited) return;
  stream.waited = ticket;
  CUevent last = nullptr;
  while (!stream.pending.empty() && stream.pending.front().ticket <= ticket) {
    last = stream.pending.front().event;
    spare_.push_back(last);
    stream.pending.pop_front();
  }
  if (last == nullptr) return;
  context_.Do(DriverCall::kEventSynchronize, Bytes(0), "", context_.api().cuEventSynchronize, last);
}

bool StreamProgress::IsComplete(const StreamEvent& event) {
  Stream& stream = At(event.stream);
  if (explicit_completion_ && event.ticket > stream.completed) return false;
  WaitFor(stream, event.ticket);
  return true;
}

void StreamProgress::Synchronize(const StreamEvent& event) {
  Stream& stream = At(event.stream);
  stream.completed = std::max(stream.completed, event.ticket);
  WaitFor(stream, event.ticket);
}

void StreamProgress::Done(uint32_t stream) { At(stream).completed = At(stream).recorded; }

absl::Status MeasureDriverCosts(CudaDevice& device, const DriverCostOptions& options) {
  uint64_t segments = 0;
  for (const Bytes size : options.segment_sizes) {
    segments += MeasureSegments(device, size, options.repeats);
  }
  uint64_t pages = 0;
  for (const Bytes page : options.page_sizes) pages += MeasurePages(device, page, options.repeats);
  RETURN_IF_ERROR(device.status());
  if (segments == 0 || pages == 0) {
    return absl::ResourceExhaustedError(
        StrCat("GPU ", device.context().card().ordinal, " (", device.context().card().name,
               "): ", device.FreeMemory().value(),
               " free bytes are too few to measure the cost of driver calls"));
  }
  return absl::OkStatus();
}

}  // namespace memreplay

#include "cuda/driver_costs.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

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

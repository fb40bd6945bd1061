// Measures the cost of driver calls on a GPU, by size.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "cuda/cuda_device.h"
#include "trace/value/units.h"

namespace memreplay {

// The sizes to measure, and how often.
struct DriverCostOptions {
  // Sizes of PyTorch's small and large segments, and of allocations with a segment of their own.
  std::vector<Bytes> segment_sizes = {MiB(2), MiB(20), MiB(64), MiB(256), MiB(1024)};
  std::vector<Bytes> page_sizes = {MiB(2), MiB(20)};  // of PyTorch's expandable segments
  int repeats = 50;
};

// Allocates `repeats` segments of each size, keeping them, then frees them all; likewise reserves a
// range, maps pages into it and unmaps them. The time of each call goes to the log of the device's
// context, whose medians are the costs; nothing else runs on the GPU, so that cuMemFree does not
// wait. If half of the free memory does not hold `repeats` segments or pages of a size, fewer are
// allocated, or none. Errors: those of the driver; no memory for even the smallest size of either.
absl::Status MeasureDriverCosts(CudaDevice& device, const DriverCostOptions& options = {});

}  // namespace memreplay

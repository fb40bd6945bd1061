// Measures what driver calls cost on a card, by size.
#ifndef MEMREPLAY_CUDA_DRIVER_COSTS_H_
#define MEMREPLAY_CUDA_DRIVER_COSTS_H_

#include <vector>

#include "absl/status/status.h"
#include "cuda/cuda_device.h"
#include "trace/value/units.h"

namespace memreplay {

// Which sizes to measure, and how often.
struct DriverCostOptions {
  // Those of PyTorch's small and large segments, and of what has a segment of its own.
  std::vector<Bytes> segment_sizes = {MiB(2), MiB(20), MiB(64), MiB(256), MiB(1024)};
  std::vector<Bytes> page_sizes = {MiB(2), MiB(20)};  // of its expandable segments
  int repeats = 50;
};

// Makes `repeats` segments of each size, keeping them, then frees them all; likewise
// reserves a range, maps pages into it and unmaps them. Each call's time goes to the
// log of the device's context, whose medians are the costs; nothing else runs on the
// card then, so that cuMemFree waits for nobody. Of a size of which half of what is
// free does not hold as many, fewer are made; of one of which it holds none, none.
// Errors: the driver's own; no memory for even the smallest size of either.
absl::Status MeasureDriverCosts(CudaDevice& device, const DriverCostOptions& options = {});

}  // namespace memreplay

#endif  // MEMREPLAY_CUDA_DRIVER_COSTS_H_

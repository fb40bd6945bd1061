// Figures of memory outside PyTorch's allocator, from public reports: outside_reports.py computes
// them from outside_reports.tsv and outside_parts.tsv, which name each report.
#ifndef MEMREPLAY_HARDWARE_OUTSIDE_FIGURES_H_
#define MEMREPLAY_HARDWARE_OUTSIDE_FIGURES_H_

#include <cstdint>

namespace memreplay {

// What several reports say of one thing, in bytes.
struct OutsideFigure {
  int reports;
  int64_t low;  // 10 % of the reports have no more
  int64_t median;
  int64_t high;  // 90 % of them have no more
};

// Context, kernels and handles of a process, for each multiprocessor of the GPU.
extern const OutsideFigure kOutsidePerMultiprocessor;
// The context before the first kernel, likewise.
extern const OutsideFigure kContextPerMultiprocessor;
// A communicator of NCCL with several ranks, and with one.
extern const OutsideFigure kNcclCommunicator, kNcclOfOneRank;
// A launch that was captured in a CUDA graph.
extern const OutsideFigure kGraphLaunch;

}  // namespace memreplay

#endif  // MEMREPLAY_HARDWARE_OUTSIDE_FIGURES_H_

// Figures of memory outside PyTorch's allocator, from public reports: outside_reports.py computes
// them from outside_reports.tsv and outside_parts.tsv, which name each report.
#pragma once

#include <cstdint>
#include <string>

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
// The fewest multiprocessors of a GPU in those reports.
extern const int kFewestMultiprocessors;
// The context before the first kernel, likewise.
extern const OutsideFigure kContextPerMultiprocessor;
// A communicator of NCCL with several ranks, and with one.
extern const OutsideFigure kNcclCommunicator, kNcclOfOneRank;
// A launch that was captured in a CUDA graph.
extern const OutsideFigure kGraphLaunch;

// A figure for a GPU whose multiprocessors are unknown, and how many of all reports of a process
// without NCCL, servers or extensions have no more.
extern const int64_t kOutsideOfUnknownGpu;
extern const int kReports, kReportsWithinUnknown;

// What a process takes of the GPU outside PyTorch's allocator before anything is known of it: an
// assumption, on which depends whether a script fits. Therefore it is the high figure of the
// reports times the GPU's multiprocessors; below the fewest of any report nothing is known, so it
// is not smaller there. `multiprocessors` is 0 if they are unknown.
struct AssumedOutside {
  int64_t bytes;
  std::string reason;  // "4.77 MiB for each of 46 multiprocessors: ..."
};
AssumedOutside AssumeOutside(int multiprocessors);

}  // namespace memreplay

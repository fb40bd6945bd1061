// Finds the settings that suit several recordings at once: the minimum over settings of the maximum
// over devices. A job needs this because all its ranks share one PYTORCH_CUDA_ALLOC_CONF.
#ifndef MEMREPLAY_REPORT_ASK_TOGETHER_H_
#define MEMREPLAY_REPORT_ASK_TOGETHER_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "proto/report.pb.h"

namespace memreplay {

// Returns the settings worth trying on all devices of `reports`, which are sweeps: the best few of
// each, the current ones, and the defaults, sorted. Settings that also need a call are left out.
std::vector<std::string> CommonCandidates(absl::Span<const proto::Report> reports);

// Returns those of `confs` that some device of `report`, a sweep, was not swept under, in order.
std::vector<std::string> Untried(const proto::Report& report, absl::Span<const std::string> confs);

// Appends the rows of `more`, another sweep of the same file, to those of `report`. An error of
// `more` becomes the error of `report`.
void AddRows(const proto::Report& more, proto::Report* report);

// Compares settings that all devices were swept under, and marks outliers. Files with an error are
// counted and not compared. O(rows log(settings)).
proto::Together CompareTogether(absl::Span<const proto::Report> reports);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_ASK_TOGETHER_H_

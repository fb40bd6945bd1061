// Puts several files of one job side by side: the worst rank, the spread and the outliers, and the
// settings that suit them all.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "proto/report.pb.h"
#include "report/page/render_html.h"

namespace memreplay {

// The reports of the files of a job, one after the other.
class JobFold {
 public:
  // Adds one row for each device of a report, in order. The figure compared is peak reserved
  // memory, from the recording for "inspect" and "oom" and from the run for "replay", or reserved
  // memory at the event where a simulated device runs out of memory, or requested memory if nothing
  // is reserved (written schedules). A file without an answer has a row with its error, device -1
  // and no figures.
  void Add(const proto::Report& report);

  // Returns the worst exit status of them.
  int status() const { return status_; }
  // Returns the rows and what follows from them. An outlier is 3.5 standard deviations from the
  // median, which a few outliers do not change; neither of two figures is one.
  proto::Job Finish() const;

 private:
  proto::Job job_;
  int status_ = 0;
};

// Renders the page of a job, which shows the files that have an answer; "" if none has one.
std::string RenderJobPage(std::vector<PageInput> ranks);

// --- One PYTORCH_CUDA_ALLOC_CONF, which all ranks share: the minimum over settings of the maximum
// over devices. ---

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

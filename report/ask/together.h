// Which settings suit several recordings at once: the least over settings of the greatest over
// devices. For a job, which has one PYTORCH_CUDA_ALLOC_CONF for all its ranks.
#ifndef MEMREPLAY_REPORT_ASK_TOGETHER_H_
#define MEMREPLAY_REPORT_ASK_TOGETHER_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "proto/report.pb.h"

namespace memreplay {

// Settings worth trying on all devices of `reports`, which are sweeps: the best few of each, those
// in force, and the defaults. Sorted. Settings that need a call besides are left out.
std::vector<std::string> CommonCandidates(absl::Span<const proto::Report> reports);

// Makes `report`, a sweep of one file, one over `confs`, from rows of `alone`, its own search.
// False, and nothing done, if those were not all tried there.
bool TakeRows(const proto::Report& alone, absl::Span<const std::string> confs,
              proto::Report* report);

// `alone`: what each file's own sweep found. `together`: sweeps of the same files, in the same
// order, over CommonCandidates(). Files with an error are counted and not compared.
proto::Together CompareTogether(absl::Span<const proto::Report> alone,
                                absl::Span<const proto::Report> together);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_ASK_TOGETHER_H_

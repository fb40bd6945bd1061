// What the recording of a script says about the memory that it needs.
#pragma once

#include "absl/status/status.h"
#include "proto/record.pb.h"

namespace memreplay {

// Sets `advised` of a report from the snapshots of its processes. Errors: OpenFile()'s,
// ReplayWhatIf()'s.
absl::Status StudyRun(proto::RecordReport* report);

// Merges the run of another rank of the same job into `run`: the rank that needs most counts.
// Settings that only one of them was replayed under are left out.
void MergeRank(const proto::AdvisedRun& other, proto::AdvisedRun* run);

}  // namespace memreplay

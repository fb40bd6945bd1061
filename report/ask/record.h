// Reports what the replay shows of a snapshot that `memreplay record` made.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "proto/record.pb.h"
#include "proto/report.pb.h"
#include "report/words/stack_names.h"
#include "sim/study/study_trace.h"
#include "trace/value/trace.h"

namespace memreplay {

// Returns the replay of one device of a snapshot, whose stacks have `names`; `device` is from
// ReportReplay().
proto::RecordedReplay RecordedReplayOf(const Trace& trace, StackNames& names, size_t device_index,
                                       const proto::DeviceReport& device);

// Adds the replay of each device of a snapshot that `process` wrote. Error: ReplayWhatIf()'s.
absl::Status AddReplays(const OpenedFile& snapshot, proto::RecordedProcess* process);

}  // namespace memreplay

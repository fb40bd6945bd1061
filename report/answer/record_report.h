// What the processes of `memreplay record` leave, and what makes the answer bad.
#ifndef MEMREPLAY_REPORT_ANSWER_RECORD_REPORT_H_
#define MEMREPLAY_REPORT_ANSWER_RECORD_REPORT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "proto/record.pb.h"
#include "proto/report.pb.h"
#include "report/words/stack_names.h"
#include "trace/value/trace.h"

namespace memreplay {

// The JSON object that a recorded process leaves; fields that are not known are left out.
// Error: InvalidArgument, no such object.
absl::StatusOr<proto::RecordedProcess> ParseRecordedProcess(std::string_view json);

// One device of a snapshot, whose stacks have `names`; `device` as ReportReplay() made it.
proto::RecordedReplay RecordedReplayOf(const Trace& trace, StackNames& names, size_t device_index,
                                       const proto::DeviceReport& device);

// Fills `faults` from the rest: a program that failed, memory that ran out, a replay that differs.
void FindRecordFaults(proto::RecordReport* report);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_ANSWER_RECORD_REPORT_H_

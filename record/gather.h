// What the processes of a recorded program leave in a folder, and where it goes.
#ifndef MEMREPLAY_RECORD_GATHER_H_
#define MEMREPLAY_RECORD_GATHER_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/record.pb.h"

namespace memreplay {

// "run/snapshot.rank3.pickle" of "run/snapshot.pickle".
std::string WithTag(const std::string& out, const std::string& tag);

// The JSON object that a recorded process leaves; fields that are not known are left out.
// Error: InvalidArgument, no such object.
absl::StatusOr<proto::RecordedProcess> ParseRecordedProcess(std::string_view json);

// Moves the snapshots of `folder` to `out`, or next to it where there are several, and adds their
// processes to the report. A process that could not write its recording, and a folder that is gone,
// become faults. Errors: InvalidArgument, as ParseRecordedProcess(); a file cannot be read or
// moved. ResourceExhausted: a summary of more than 64 MiB.
absl::Status GatherProcesses(const std::string& folder, const std::string& out,
                             proto::RecordReport* report);

// All of a file of at most 64 MiB. Errors as above.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path);

}  // namespace memreplay

#endif  // MEMREPLAY_RECORD_GATHER_H_

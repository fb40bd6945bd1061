// Collects what the processes of a recorded script leave in a folder.
#ifndef MEMREPLAY_RECORD_GATHER_H_
#define MEMREPLAY_RECORD_GATHER_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/record.pb.h"

namespace memreplay {

// Returns `out` with `tag` before its extension: "run/snapshot.rank3.pickle".
std::string WithTag(const std::string& out, const std::string& tag);

// Parses the JSON object that a recorded process leaves; unknown fields are ignored. Error:
// InvalidArgument if it is no such object.
absl::StatusOr<proto::RecordedProcess> ParseRecordedProcess(std::string_view json);

// Moves the snapshots of `folder` to `out`, or next to it if there are several, and adds their
// processes to the report. A process that could not write its recording becomes a fault, and so
// does a missing folder. Errors: InvalidArgument, as ParseRecordedProcess(), or if a file cannot be
// read or moved. ResourceExhausted if a summary has more than 64 MiB.
absl::Status GatherProcesses(const std::string& folder, const std::string& out,
                             proto::RecordReport* report);

// How far all processes together are.
struct RecordProgress {
  uint64_t launches = 0;   // of kernels
  uint64_t peak_used = 0;  // bytes of a card
};

// Reads the files progress.PID of `folder`, which record/card writes while the script runs. One
// that is not whole is left out.
RecordProgress ReadProgress(const std::string& folder);

// Reads a whole file of at most 64 MiB; something else, such as a pipe, cannot be read. Errors as
// above.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path);

// Returns what is in a folder; sets `error` if it cannot be listed to its end.
std::vector<std::filesystem::path> PathsIn(const std::filesystem::path& folder,
                                           std::error_code* error);

}  // namespace memreplay

#endif  // MEMREPLAY_RECORD_GATHER_H_

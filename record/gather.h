// Collects what the processes of a recorded script leave in a folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
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

// Returns the names of what processes leave in a folder.
const proto::Wishes::Files& LeftFiles();

// Parses the ProcessSummary that a recorded process leaves. Error: InvalidArgument if it is none,
// or one of another version of memreplay.
absl::StatusOr<proto::RecordedProcess> ParseRecordedProcess(std::string_view json);

// Where snapshots are written.
struct SnapshotPlace {
  // With several processes, or one of a job of several, the files are snapshot.rank0.pickle and so
  // on, unless this is a device.
  std::string out = "snapshot.pickle";
  // `out` is not the user's choice, so that it replaces only snapshots that memreplay wrote before
  // the run began. Where another file is, the next of snapshot.2.pickle and so on is taken.
  bool is_default = false;
  std::filesystem::file_time_type began = std::filesystem::file_time_type::max();
  std::vector<std::string> inputs;  // files that the script reads, which are not overwritten
};

// Returns OK if the snapshot of a single process can be written there, and over what is there of
// ranks; chooses another default before. Errors: those of CheckOutputs()
// (trace/bytes/output_file.h).
absl::Status CheckPlace(SnapshotPlace* place);

using Judge = std::function<void(proto::RecordReport*)>;

// Moves the snapshots of `folder` to their place and adds their processes to the report. `judge`,
// which may be null, is called in between: a snapshot gets what it sets as `ended`. A process
// that could not write its recording becomes a fault, and so does a missing folder. Returns where
// the snapshot of each process can be read: in `folder` if it was written to a pipe or a device.
// Errors: InvalidArgument, as ParseRecordedProcess(), if a file cannot be read, and as
// CheckOutputs(); DataLoss if one cannot be written; ResourceExhausted if a summary has more than
// 64 MiB. After an error, what was not written is still in the folder.
absl::StatusOr<std::vector<std::string>> GatherProcesses(const std::string& folder,
                                                         SnapshotPlace place, const Judge& judge,
                                                         proto::RecordReport* report);

// How far all processes together are.
struct RecordProgress {
  uint64_t launches = 0;   // of kernels
  uint64_t peak_used = 0;  // bytes of a card
};

// Reads how far each process is in the files of `folder`, which record/card writes while the script
// runs. One that is not whole is left out.
RecordProgress ReadProgress(const std::string& folder);

// Reads a whole file of at most 64 MiB; something else, such as a pipe, cannot be read. Errors as
// above.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path);

// Returns what is in a folder; sets `error` if it cannot be listed to its end.
std::vector<std::filesystem::path> PathsIn(const std::filesystem::path& folder,
                                           std::error_code* error);

}  // namespace memreplay

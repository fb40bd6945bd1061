// Edits of a script's files, put together and as a patch.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/record.pb.h"

namespace memreplay {

// Returns the edits of several changes as those of one: by file and in order, each once; those that
// insert at one place stay in the order given. Error: two of them replace the same text.
absl::StatusOr<std::vector<proto::Edit>> MergeEdits(std::vector<proto::Edit> edits);

// Changes of files, for a folder.
struct Patch {
  std::string text;    // a unified diff with three lines of context, for `patch -p1`
  std::string folder;  // in which it applies, where that is not the script's
};

// Returns what merged edits change, for the script's folder, or the root of the repository (the
// folder with .git) above it if that holds other files that they change. Errors: a file is in
// neither, cannot be read or has become shorter.
absl::StatusOr<Patch> PatchOf(absl::Span<const proto::Edit> edits, const std::string& folder);

// Returns the folder of the script that a command line runs: that of its first word which is a
// Python file, else the current one.
std::string FolderOfScript(const std::vector<std::string>& program);

}  // namespace memreplay

// Writes the files of `memreplay record` to disk.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace memreplay {

// Where the unpacked files are.
struct RecordFolders {
  std::string python;  // for PYTHONPATH
  std::string core;    // the library of the simulated GPU
  std::string pass;    // the library that is preloaded on a real GPU
  std::string cache;   // for the libraries made from it, one folder per build of PyTorch
};

// Returns the names of the changes to scripts: the NAME of each remedy (remedies/__init__.py).
std::vector<std::string_view> RemedyNames();

// Returns the folder for cached files: $XDG_CACHE_HOME/memreplay or ~/.cache/memreplay.
std::string CacheFolder();

// Unpacks missing files into CacheFolder()/record-DIGEST. Several processes may do so at once.
// Error: InvalidArgument if a folder cannot be written.
absl::StatusOr<RecordFolders> UnpackRecordFiles();

}  // namespace memreplay

// The files of `memreplay record` on disk.
#ifndef MEMREPLAY_RECORD_UNPACK_H_
#define MEMREPLAY_RECORD_UNPACK_H_

#include <string>

#include "absl/status/statusor.h"

namespace memreplay {

struct RecordFolders {
  std::string python;  // for PYTHONPATH
  std::string core;    // the library of the card
  std::string cache;   // for what is made from it, per build of PyTorch
};

// Where files are cached: $XDG_CACHE_HOME/memreplay or ~/.cache/memreplay.
std::string CacheFolder();

// Unpacks what is not there yet into CacheFolder()/record-DIGEST. Several processes may do so at
// once. Error: a folder that cannot be written.
absl::StatusOr<RecordFolders> UnpackRecordFiles();

}  // namespace memreplay

#endif  // MEMREPLAY_RECORD_UNPACK_H_

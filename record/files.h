// The files that `memreplay record` puts into the user's processes, as constants in the binary:
// record/process and the libraries of record/card.
#pragma once

#include <cstddef>
#include <string_view>

namespace memreplay {

// One embedded file.
struct RecordFile {
  std::string_view name;  // "memreplay_record/card.py"
  std::string_view content;
};

extern const RecordFile* const kRecordFiles;
extern const size_t kRecordFileCount;
extern const std::string_view kRecordFilesDigest;  // changes when any of them does

}  // namespace memreplay

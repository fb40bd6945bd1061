// The files that `memreplay record` puts into the user's processes, as constants in the program:
// record/process and the library of the card.
#ifndef MEMREPLAY_RECORD_FILES_H_
#define MEMREPLAY_RECORD_FILES_H_

#include <cstddef>
#include <string_view>

namespace memreplay {

struct RecordFile {
  std::string_view name;  // "memreplay_record/card.py"
  std::string_view content;
};

extern const RecordFile* const kRecordFiles;
extern const size_t kRecordFileCount;
extern const std::string_view kRecordFilesDigest;  // changes with any of them

}  // namespace memreplay

#endif  // MEMREPLAY_RECORD_FILES_H_

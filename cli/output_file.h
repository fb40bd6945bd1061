// Files that are complete or not there.
#ifndef MEMREPLAY_CLI_OUTPUT_FILE_H_
#define MEMREPLAY_CLI_OUTPUT_FILE_H_

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trace/bytes/byte_sink.h"

namespace memreplay {

// OK if `path` ("-": standard output) can be written while `inputs` are read:
// its folder is there and writable, and it is none of the inputs, by device and
// inode. Errors: InvalidArgument.
absl::Status CheckOutput(const std::string& path, const std::vector<std::string>& inputs);

// A file being written, or standard output for "-". Unbuffered: write large
// pieces. The first error sticks and is told by Close().
//
// A regular file is written next to its place, without a name where the file
// system can, else as ".NAME.memreplay-XXXXXX.tmp", and takes the place of what
// was there only in Close(), complete and on disk. Whatever ends the program or
// the writing before that leaves the old file as it was. Links are followed, and the
// permissions of the old file kept. Devices and pipes are written as they are.
class OutputFile {
 public:
  // Errors: CheckOutput()'s. Nothing is made before the first Write().
  static absl::StatusOr<OutputFile> Open(const std::string& path,
                                         const std::vector<std::string>& inputs);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  // Without a Close() before, nothing was written.
  ~OutputFile();

  void Write(std::string_view text);
  // Records a failure of the caller, who makes the text: Close() returns it and keeps the old file.
  void Fail(const absl::Status& status) { status_.Update(status); }
  const absl::Status& status() const { return status_; }
  absl::Status Close();

 private:
  enum class Kind { kStandardOutput, kAsItIs, kReplaced };

  OutputFile(Kind kind, std::string name) : kind_(kind), name_(std::move(name)) {}
  // Makes the file that is written; sets status_ if that fails.
  void Start();
  void Place();  // the complete file, where it belongs
  void Cannot(std::string_view what);

  Kind kind_;
  std::string name_;       // as the user wrote it
  std::string place_;      // kReplaced: the same with links followed
  std::string temporary_;  // kReplaced: its name while it has one
  mode_t mode_ = 0;        // kReplaced: of the old file; 0: there is none
  int fd_ = -1;
  bool started_ = false;
  absl::Status status_;
};

// Lets a writer of traces write to an OutputFile, which must outlive it.
class FileSink final : public ByteSink {
 public:
  explicit FileSink(OutputFile* file) : file_(file) {}
  absl::Status Append(std::string_view bytes) override {
    file_->Write(bytes);
    return file_->status();
  }

 private:
  OutputFile* file_;
};

}  // namespace memreplay

#endif  // MEMREPLAY_CLI_OUTPUT_FILE_H_

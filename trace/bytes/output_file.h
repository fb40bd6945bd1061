// Output files that are either complete or absent.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trace/bytes/byte_sink.h"

namespace memreplay {

// Returns whether `path` is standard output: "-", "/dev/stdout".
bool IsStandardOutput(const std::string& path);

// Returns OK if each of `paths` ("-" is standard output) can be written while `inputs` are read:
// its folder exists and is writable, and it is none of the inputs and none of the others, by device
// and inode. Devices may be given several times. Errors: InvalidArgument.
absl::Status CheckOutputs(const std::vector<std::string>& paths,
                          const std::vector<std::string>& inputs);

// Returns OK if `path`, a name that the user did not give, replaces nothing but what memreplay
// wrote itself: files that contain `mark` in their first or last 8 KiB, and empty ones. Errors:
// InvalidArgument.
absl::Status CheckReplacesOwn(const std::string& path, std::string_view mark);

// Returns the folder from which a file can be renamed to `path`, links followed; where `path` is
// not replaced (standard output, a device, a pipe), the one for temporary files.
std::string FolderBeside(const std::string& path);

// Returns the name `stem` + `ending`, with a shorter stem if it had more than 255 bytes, the
// maximum of Linux; no UTF-8 character is cut.
std::string FileName(std::string_view stem, std::string_view ending);

// A file being written, or standard output for "-". It has no buffer, so pieces should be large.
// The first error is kept and returned by Close().
//
// A regular file is written next to its final place, without a name where the file system supports
// that, else as ".memreplay-XXXXXXXXXXXXXXXX.tmp". It replaces the old file only in Close(),
// complete and on disk; until then the old file stays as it was, whatever happens. Links are
// followed, and the permissions of the old file are kept. Devices and pipes are written directly.
class OutputFile final : public ByteSink {
 public:
  // Errors: those of CheckOutputs(). No file is created before the first Write().
  static absl::StatusOr<OutputFile> Open(const std::string& path,
                                         const std::vector<std::string>& inputs);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  // Discards what was written unless Close() was called.
  ~OutputFile() override;

  void Write(std::string_view text);
  absl::Status Append(std::string_view bytes) override {
    Write(bytes);
    return status_;
  }
  // Records a failure of the caller to make the content: Close() returns it and keeps the old file.
  void Fail(const absl::Status& status) { status_.Update(status); }
  const absl::Status& status() const { return status_; }
  absl::Status Close();
  // Closes with what is in the file `made`, which is moved if possible and remains otherwise,
  // always where this fails.
  absl::Status CloseWith(const std::string& made);

 private:
  enum class Kind { kStandardOutput, kAsItIs, kReplaced };

  OutputFile(Kind kind, std::string name) : kind_(kind), name_(std::move(name)) {}
  // Creates the file that is written; sets status_ if that fails.
  void Start();
  void Place();  // moves the complete file to its final place
  void SyncFolder() const;
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

}  // namespace memreplay

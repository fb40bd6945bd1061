#include "cli/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "trace/value/strings.h"

namespace memreplay {
namespace {

bool IsStandardOutput(const std::string& path) {
  return path == "-" || path == "/dev/stdout" || path == "/dev/fd/1" || path == "/proc/self/fd/1";
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string NameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Returns the path behind links; a last link to a missing file is followed too.
std::string Followed(const std::string& path) {
  std::string at = path;
  for (int links = 0; links < 40; ++links) {
    char target[4096];
    const ssize_t length = readlink(at.c_str(), target, sizeof(target));
    if (length <= 0 || length == static_cast<ssize_t>(sizeof(target))) break;
    const std::string next(target, static_cast<size_t>(length));
    at = next[0] == '/' ? next : StrCat(FolderOf(at), "/", next);
  }
  return at;
}

// Returns the path by which a file without a name can be linked.
std::string ThroughDescriptor(int fd) { return StrCat("/proc/self/fd/", fd); }

}  // namespace

absl::Status CheckOutput(const std::string& path, const std::vector<std::string>& inputs) {
  struct stat old;
  const bool is_standard = IsStandardOutput(path);
  const bool is_there = (is_standard ? fstat(STDOUT_FILENO, &old) : stat(path.c_str(), &old)) == 0;
  const std::string_view name = is_standard ? "standard output" : std::string_view(path);
  if (is_there && S_ISDIR(old.st_mode)) {
    return absl::InvalidArgumentError(StrCat(name, ": cannot open for writing: is a directory"));
  }
  if (is_there && S_ISREG(old.st_mode)) {
    for (const std::string& input : inputs) {
      struct stat read;
      const bool is_read =
          (input == "-" ? fstat(STDIN_FILENO, &read) : stat(input.c_str(), &read)) == 0;
      if (is_read && read.st_dev == old.st_dev && read.st_ino == old.st_ino) {
        return absl::InvalidArgumentError(
            StrCat(name, ": is also an input and would be overwritten; write to another file"));
      }
    }
  }
  if (is_standard) return absl::OkStatus();
  // The folder of a regular file changes when the file is replaced.
  const bool is_replaced = !is_there || S_ISREG(old.st_mode);
  if (is_there && access(path.c_str(), W_OK) != 0) {
    return absl::InvalidArgumentError(
        StrCat(name, ": cannot open for writing: ", std::strerror(errno)));
  }
  if (is_replaced && access(FolderOf(Followed(path)).c_str(), W_OK | X_OK) != 0) {
    return absl::InvalidArgumentError(
        StrCat(name, ": cannot open for writing: ", std::strerror(errno)));
  }
  if (path.empty() || (!is_there && path.back() == '/')) {
    return absl::InvalidArgumentError(StrCat(name, ": cannot open for writing: not a file name"));
  }
  return absl::OkStatus();
}

absl::StatusOr<OutputFile> OutputFile::Open(const std::string& path,
                                            const std::vector<std::string>& inputs) {
  if (const absl::Status status = CheckOutput(path, inputs); !status.ok()) return status;
  if (IsStandardOutput(path)) return OutputFile(Kind::kStandardOutput, "standard output");
  struct stat old;
  const bool is_there = stat(path.c_str(), &old) == 0;
  if (is_there && !S_ISREG(old.st_mode)) return OutputFile(Kind::kAsItIs, path);
  OutputFile file(Kind::kReplaced, path);
  file.place_ = Followed(path);
  if (is_there) file.mode_ = old.st_mode & 07777;
  return file;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : kind_(other.kind_),
      name_(std::move(other.name_)),
      place_(std::move(other.place_)),
      temporary_(std::exchange(other.temporary_, "")),
      mode_(other.mode_),
      fd_(std::exchange(other.fd_, -1)),
      started_(other.started_),
      status_(std::move(other.status_)) {}

OutputFile::~OutputFile() {
  if (fd_ >= 0 && kind_ != Kind::kStandardOutput) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void OutputFile::Cannot(std::string_view what) {
  status_.Update(absl::DataLossError(StrCat(name_, ": cannot ", what, ": ", std::strerror(errno))));
}

void OutputFile::Start() {
  started_ = true;
  if (kind_ == Kind::kStandardOutput) {
    fd_ = STDOUT_FILENO;
    return;
  }
  if (kind_ == Kind::kAsItIs) {
    fd_ = open(name_.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd_ < 0) Cannot("open for writing");
    return;
  }
  // A file without a name disappears with the process, however that ends.
  const std::string folder = FolderOf(place_);
  fd_ = open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (fd_ >= 0 && access(ThroughDescriptor(fd_).c_str(), F_OK) != 0) {
    close(fd_);
    fd_ = -1;
  }
  if (fd_ < 0) {
    std::string name = StrCat(folder, "/.", NameOf(place_), ".memreplay-XXXXXX.tmp");
    fd_ = mkostemps(name.data(), 4, O_CLOEXEC);
    if (fd_ < 0) return Cannot("open for writing");
    temporary_ = name;
    const mode_t mask = umask(0);
    umask(mask);
    if (mode_ == 0 && fchmod(fd_, 0666 & ~mask) != 0) return Cannot("open for writing");
  }
  if (mode_ != 0 && fchmod(fd_, mode_) != 0) Cannot("keep the permissions of the old file");
}

void OutputFile::Write(std::string_view text) {
  if (!started_ && status_.ok()) Start();
  while (!text.empty() && status_.ok()) {
    const ssize_t written = write(fd_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Cannot("write");
    text.remove_prefix(static_cast<size_t>(written));
  }
}

void OutputFile::Place() {
  if (fsync(fd_) != 0 && errno != EINVAL && errno != EROFS) return Cannot("write");
  if (temporary_.empty()) {
    // The name is unused; a file of that name was left by a run that was killed.
    const std::string name =
        StrCat(FolderOf(place_), "/.", NameOf(place_), ".memreplay-", getpid(), ".tmp");
    unlink(name.c_str());
    if (linkat(AT_FDCWD, ThroughDescriptor(fd_).c_str(), AT_FDCWD, name.c_str(),
               AT_SYMLINK_FOLLOW) != 0) {
      return Cannot("write");
    }
    temporary_ = name;
  }
  if (close(std::exchange(fd_, -1)) != 0) return Cannot("write");
  if (rename(temporary_.c_str(), place_.c_str()) != 0) return Cannot("write");
  temporary_.clear();
  // Makes the name survive a power cut, where the file system supports this.
  const int folder = open(FolderOf(place_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    fsync(folder);
    close(folder);
  }
}

absl::Status OutputFile::Close() {
  if (!started_ && status_.ok()) Start();  // an empty file
  if (kind_ == Kind::kReplaced && status_.ok()) Place();
  if (fd_ >= 0 && kind_ != Kind::kStandardOutput && close(fd_) != 0 && status_.ok()) {
    Cannot("write");
  }
  fd_ = -1;
  if (!temporary_.empty()) unlink(std::exchange(temporary_, "").c_str());
  return status_;
}

}  // namespace memreplay

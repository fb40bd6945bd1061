#include "trace/bytes/output_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/str_format.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

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

// Returns a name that no other process and no other file of this one has, however long theirs are.
std::string TemporaryName(const std::string& folder) {
  uint64_t random = 0;
  if (getrandom(&random, sizeof(random), 0) < 0) random = static_cast<uint64_t>(getpid());
  return StrCat(folder, absl::StrFormat("/.memreplay-%016x.tmp", random));
}

// Ends the process by SIGPIPE, as programs in a pipeline do, unless the caller ignores that signal.
void EndByPipe() {
  struct sigaction now = {};
  sigaction(SIGPIPE, nullptr, &now);
  if (now.sa_handler == SIG_IGN) return;
  signal(SIGPIPE, SIG_DFL);
  raise(SIGPIPE);
}

int StatOutput(const std::string& path, struct stat* info) {
  return IsStandardOutput(path) ? fstat(STDOUT_FILENO, info) : stat(path.c_str(), info);
}

std::string_view ShownName(const std::string& path) {
  return IsStandardOutput(path) ? "standard output" : std::string_view(path);
}

absl::Status CheckOutput(const std::string& path, const std::vector<std::string>& inputs) {
  struct stat old;
  const bool is_there = StatOutput(path, &old) == 0;
  const std::string_view name = ShownName(path);
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
  if (IsStandardOutput(path)) return absl::OkStatus();
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

// Returns a text that is equal for two paths of one file, also of one that is not there yet; "" for
// a device, which holds nothing that a second output could replace.
std::string PlaceOf(const std::string& path) {
  struct stat info;
  if (StatOutput(path, &info) == 0 && !S_ISCHR(info.st_mode)) {
    return StrCat(info.st_dev, ":", info.st_ino);
  }
  if (IsStandardOutput(path)) return "-";
  const std::string place = Followed(path);
  if (stat(place.c_str(), &info) == 0 || stat(FolderOf(place).c_str(), &info) != 0) return "";
  return StrCat(info.st_dev, ":", info.st_ino, "/", place.substr(place.rfind('/') + 1));
}

}  // namespace

bool IsStandardOutput(const std::string& path) {
  return path == "-" || path == "/dev/stdout" || path == "/dev/fd/1" || path == "/proc/self/fd/1";
}

absl::Status CheckOutputs(const std::vector<std::string>& paths,
                          const std::vector<std::string>& inputs) {
  std::map<std::string, const std::string*> places;
  for (const std::string& path : paths) {
    RETURN_IF_ERROR(CheckOutput(path, inputs));
    const auto [other, is_new] = places.emplace(PlaceOf(path), &path);
    if (is_new || other->first.empty()) continue;
    return absl::InvalidArgumentError(
        StrCat(ShownName(path), ": is also another output",
               *other->second == path ? "" : StrCat(" (", ShownName(*other->second), ")"),
               ", and one of the two would be lost; write to another file"));
  }
  return absl::OkStatus();
}

absl::Status CheckReplacesOwn(const std::string& path, std::string_view mark) {
  struct stat old;
  if (stat(path.c_str(), &old) != 0 || !S_ISREG(old.st_mode) || old.st_size == 0) {
    return absl::OkStatus();
  }
  char piece[8 << 10];
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  bool is_own = false;
  for (const off_t at : {off_t{0}, std::max<off_t>(old.st_size - off_t{sizeof(piece)}, 0)}) {
    const ssize_t got = fd < 0 ? 0 : pread(fd, piece, sizeof(piece), at);
    is_own = is_own || (got > 0 && std::string_view(piece, static_cast<size_t>(got)).find(mark) !=
                                       std::string_view::npos);
  }
  if (fd >= 0) close(fd);
  if (is_own) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat(
      path, ": was not written by memreplay and would be overwritten; name another file with -o"));
}

std::string FolderBeside(const std::string& path) {
  struct stat old;
  if (IsStandardOutput(path) || (stat(path.c_str(), &old) == 0 && !S_ISREG(old.st_mode))) {
    const char* const named = std::getenv("TMPDIR");
    return named != nullptr && named[0] != 0 ? named : "/tmp";
  }
  return FolderOf(Followed(path));
}

std::string FileName(std::string_view stem, std::string_view ending) {
  constexpr size_t kMaxBytes = 255;
  if (stem.size() + ending.size() > kMaxBytes && ending.size() < kMaxBytes) {
    size_t size = kMaxBytes - ending.size();
    while (size > 0 && (static_cast<unsigned char>(stem[size]) & 0xc0) == 0x80) --size;
    stem = stem.substr(0, size);
  }
  return StrCat(stem, ending);
}

absl::StatusOr<OutputFile> OutputFile::Open(const std::string& path,
                                            const std::vector<std::string>& inputs) {
  RETURN_IF_ERROR(CheckOutputs({path}, inputs));
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
    const std::string name = TemporaryName(folder);
    fd_ = open(name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (fd_ < 0) return Cannot("open for writing");
    temporary_ = name;
  }
  if (mode_ != 0 && fchmod(fd_, mode_) != 0) Cannot("keep the permissions of the old file");
}

void OutputFile::Write(std::string_view text) {
  if (!started_ && status_.ok()) Start();
  while (!text.empty() && status_.ok()) {
    const ssize_t written = write(fd_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EPIPE && kind_ == Kind::kStandardOutput) EndByPipe();
    if (written < 0) return Cannot("write");
    text.remove_prefix(static_cast<size_t>(written));
  }
}

void OutputFile::Place() {
  if (fsync(fd_) != 0 && errno != EINVAL && errno != EROFS) return Cannot("write");
  if (temporary_.empty()) {
    const std::string name = TemporaryName(FolderOf(place_));
    if (linkat(AT_FDCWD, ThroughDescriptor(fd_).c_str(), AT_FDCWD, name.c_str(),
               AT_SYMLINK_FOLLOW) != 0) {
      return Cannot("write");
    }
    temporary_ = name;
  }
  if (close(std::exchange(fd_, -1)) != 0) return Cannot("write");
  if (rename(temporary_.c_str(), place_.c_str()) != 0) return Cannot("write");
  temporary_.clear();
  SyncFolder();
}

void OutputFile::SyncFolder() const {
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

absl::Status OutputFile::CloseWith(const std::string& made) {
  const int fd = open(made.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    Cannot("write");
    return status_;
  }
  const bool is_moved = kind_ == Kind::kReplaced && (mode_ == 0 || fchmod(fd, mode_) == 0) &&
                        fsync(fd) == 0 && rename(made.c_str(), place_.c_str()) == 0;
  if (is_moved) {
    SyncFolder();
  } else {  // to another file system, a device or a pipe
    std::string piece(size_t{1} << 20, '\0');
    ssize_t got = 0;
    while (status_.ok() &&
           ((got = read(fd, piece.data(), piece.size())) > 0 || (got < 0 && errno == EINTR))) {
      if (got > 0) Write(std::string_view(piece).substr(0, static_cast<size_t>(got)));
    }
    if (got < 0 && status_.ok()) Cannot("write");
  }
  close(fd);
  return is_moved ? status_ : Close();
}

}  // namespace memreplay

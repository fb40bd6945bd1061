#include "trace/bytes/raw_input.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "trace/value/strings.h"

namespace memreplay::internal {
namespace {

constexpr size_t kPipeChunk = 256 << 10;

absl::Status ErrnoStatus(int error, const std::string& path) {
  switch (error) {
    case ENOENT:
    case ENOTDIR: return absl::NotFoundError(StrCat(path, ": no such file"));
    case EACCES:
    case EPERM: return absl::PermissionDeniedError(StrCat(path, ": no permission to read it"));
    case EISDIR: return absl::InvalidArgumentError(StrCat(path, ": is a directory"));
    default: return absl::UnavailableError(StrCat(path, ": ", strerror(error)));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<RawInput>> RawInput::Open(const std::string& path) {
  // /dev/stdin does not exist in a bare chroot.
  const int fd = path == "-" ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                             : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, path);
  std::unique_ptr<RawInput> input(new RawInput);
  input->fd_ = fd;  // the destructor closes it on every return
  struct stat info;
  if (fstat(fd, &info) != 0) return ErrnoStatus(errno, path);
  if (S_ISDIR(info.st_mode)) return ErrnoStatus(EISDIR, path);
  if (!S_ISREG(info.st_mode)) return input;
  if (info.st_size == 0) return absl::InvalidArgumentError(StrCat(path, ": is empty"));
  const auto size = static_cast<size_t>(info.st_size);
  void* mapping = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (mapping == MAP_FAILED) return ErrnoStatus(errno, path);
  madvise(mapping, size, MADV_SEQUENTIAL);
  close(fd);
  input->fd_ = -1;
  input->mapping_ = mapping;
  input->mapping_size_ = size;
  input->unread_ = std::string_view(static_cast<const char*>(mapping), size);
  return input;
}

std::unique_ptr<RawInput> RawInput::FromBytes(std::string bytes) {
  std::unique_ptr<RawInput> input(new RawInput);
  input->owned_ = std::move(bytes);
  input->unread_ = input->owned_;
  return input;
}

RawInput::~RawInput() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_size_);
  if (fd_ >= 0) close(fd_);
}

void RawInput::Drop(std::string_view bytes) const {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto mapping = reinterpret_cast<uintptr_t>(mapping_);
  const auto begin = (reinterpret_cast<uintptr_t>(bytes.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<uintptr_t>(bytes.data() + bytes.size()) / page * page;
  if (mapping_ == nullptr || begin < mapping || end > mapping + mapping_size_ || begin >= end)
    return;
  madvise(static_cast<char*>(mapping_) + (begin - mapping), end - begin, MADV_DONTNEED);
}

absl::StatusOr<std::string_view> RawInput::Peek() {
  if (unread_.empty() && fd_ >= 0) {
    owned_.resize(kPipeChunk);
    ssize_t got;
    do {
      got = read(fd_, owned_.data(), owned_.size());
    } while (got < 0 && errno == EINTR);
    if (got < 0) return ErrnoStatus(errno, "input");
    unread_ = std::string_view(owned_.data(), static_cast<size_t>(got));
  }
  return unread_;
}

}  // namespace memreplay::internal

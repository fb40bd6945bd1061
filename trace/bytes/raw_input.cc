#include "trace/bytes/raw_input.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "trace/value/status_macros.h"
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

absl::Status Damaged(const char* what, const RawInput& input, std::string_view why) {
  return absl::DataLossError(
      StrCat(what, " data is damaged at compressed byte ", input.position(), ": ", why));
}

absl::Status Truncated(const char* what, const RawInput& input) {
  return absl::DataLossError(StrCat(what, " data is truncated: the file ends at compressed byte ",
                                    input.position(), ", but more was expected"));
}

// Skips zero padding after a complete member; returns true if another member follows.
absl::StatusOr<bool> MoreFollows(RawInput& input) {
  for (;;) {
    ASSIGN_OR_RETURN(std::string_view chunk, input.Peek());
    if (chunk.empty()) return false;
    const size_t zeros = std::min(chunk.find_first_not_of('\0'), chunk.size());
    const bool all_zero = zeros == chunk.size();
    input.Skip(zeros);
    if (!all_zero) return true;
  }
}

class GzipDecoder : public Decoder {
 public:
  GzipDecoder() { ready_ = inflateInit2(&z_, 15 + 16) == Z_OK; }
  ~GzipDecoder() override {
    if (ready_) inflateEnd(&z_);
  }

  absl::StatusOr<size_t> Decode(RawInput& input, char* out, size_t capacity) override {
    if (!ready_) return absl::ResourceExhaustedError("not enough memory for the gzip decoder");
    capacity = std::min<size_t>(capacity, 1u << 30);
    z_.next_out = reinterpret_cast<Bytef*>(out);
    z_.avail_out = static_cast<uInt>(capacity);
    while (z_.avail_out == capacity) {
      if (between_members_) {
        ASSIGN_OR_RETURN(const bool more, MoreFollows(input));
        if (!more) return 0;
        inflateReset(&z_);
        between_members_ = false;
      }
      ASSIGN_OR_RETURN(std::string_view chunk, input.Peek());
      if (chunk.empty()) return Truncated("gzip", input);
      const size_t given = std::min<size_t>(chunk.size(), 1u << 30);
      z_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(chunk.data()));
      z_.avail_in = static_cast<uInt>(given);
      const int result = inflate(&z_, Z_NO_FLUSH);
      input.Skip(given - z_.avail_in);
      if (result == Z_STREAM_END) {
        between_members_ = true;
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        return Damaged("gzip", input, z_.msg != nullptr ? z_.msg : "not a gzip member");
      }
    }
    return capacity - z_.avail_out;
  }

 private:
  z_stream z_ = {};
  bool ready_ = false;
  bool between_members_ = false;
};

class ZstdDecoder : public Decoder {
 public:
  ZstdDecoder() : stream_(ZSTD_createDStream()) {}
  ~ZstdDecoder() override { ZSTD_freeDStream(stream_); }

  absl::StatusOr<size_t> Decode(RawInput& input, char* out, size_t capacity) override {
    if (stream_ == nullptr)
      return absl::ResourceExhaustedError("not enough memory for the zstd decoder");
    ZSTD_outBuffer target = {out, capacity, 0};
    while (target.pos == 0) {
      if (between_frames_) {
        ASSIGN_OR_RETURN(const bool more, MoreFollows(input));
        if (!more) return 0;
        between_frames_ = false;
      }
      ASSIGN_OR_RETURN(std::string_view chunk, input.Peek());
      ZSTD_inBuffer source = {chunk.data(), chunk.size(), 0};
      const size_t result = ZSTD_decompressStream(stream_, &target, &source);
      input.Skip(source.pos);
      if (ZSTD_isError(result)) return Damaged("zstd", input, ZSTD_getErrorName(result));
      if (result == 0) {
        between_frames_ = true;
      } else if (chunk.empty() && target.pos == 0) {
        return Truncated("zstd", input);
      }
    }
    return target.pos;
  }

 private:
  ZSTD_DStream* stream_;
  bool between_frames_ = false;
};

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

std::unique_ptr<Decoder> NewGzipDecoder() { return std::make_unique<GzipDecoder>(); }
std::unique_ptr<Decoder> NewZstdDecoder() { return std::make_unique<ZstdDecoder>(); }

}  // namespace memreplay::internal

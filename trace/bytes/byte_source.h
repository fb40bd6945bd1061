// The bytes of one input, read once from front to back: a mapped file, or the decompressed content
// of a gzip or zstd file. The first bytes, never the name, determine the encoding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace memreplay {

namespace internal {
class RawInput;
class Decoder;
}  // namespace internal

// A moving window over the decompressed bytes of a file or of memory.
class ByteSource {
 public:
  enum class Encoding : uint8_t { kPlain, kGzip, kZstd };

  // Limits on decompressed bytes, since a small file that unpacks to gigabytes is an attack: beyond
  // `free_bytes`, output may be at most `max_ratio` times the compressed bytes read so far.
  struct Limits {
    uint64_t max_bytes = uint64_t{64} << 30;
    uint64_t max_ratio = 4096;
    uint64_t free_bytes = uint64_t{64} << 20;
  };

  // Opens a file: regular files are mapped, pipes and character devices are read as data arrives,
  // and "-" is standard input. Errors name the path: NotFound, PermissionDenied, InvalidArgument (a
  // directory, an empty file). A mapped file must not shrink while it is read.
  static absl::StatusOr<std::unique_ptr<ByteSource>> Open(const std::string& path,
                                                          const Limits& limits);
  static absl::StatusOr<std::unique_ptr<ByteSource>> Open(const std::string& path) {
    return Open(path, Limits());
  }
  // Opens bytes in memory, compressed or not.
  static absl::StatusOr<std::unique_ptr<ByteSource>> FromBytes(std::string bytes,
                                                               const Limits& limits);
  static absl::StatusOr<std::unique_ptr<ByteSource>> FromBytes(std::string bytes) {
    return FromBytes(std::move(bytes), Limits());
  }

  ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  // Returns all unread bytes in memory, at least `n` unless the input ends or fails (see status())
  // before. The view is valid until the next call of a non-const member. Memory grows with the
  // bytes that exist, never with `n`.
  std::string_view Peek(size_t n) {
    if (static_cast<size_t>(end_ - begin_) < n && !ended_) Fill(n);
    return std::string_view(begin_, static_cast<size_t>(end_ - begin_));
  }
  // Marks the first `n` bytes returned by Peek() as read.
  void Skip(size_t n) { begin_ += n; }

  // Says that bytes which Peek() returned need not stay in memory; looking at them again is slow.
  // May be called on any thread.
  void Drop(std::string_view bytes) const;

  // Reads the next line without its '\n' (and '\r'); returns false at the end of the input or on
  // failure. A last line without '\n' counts. The line is valid as long as the result of Peek(). A
  // line longer than `max_length` is a failure.
  bool ReadLine(std::string_view* line, size_t max_length = size_t{1} << 20);

  // Returns the number of (decompressed) bytes skipped so far.
  uint64_t position() const { return loaded_ - static_cast<uint64_t>(end_ - begin_); }
  // Returns the number of unread bytes; it is unknown for streams.
  std::optional<uint64_t> remaining() const {
    if (!ended_) return std::nullopt;
    return static_cast<uint64_t>(end_ - begin_);
  }
  // Returns the error of reading or decompressing, if any; Peek() returns what came before it.
  // Check the status whenever the input seems to end too early.
  const absl::Status& status() const { return status_; }
  Encoding encoding() const { return encoding_; }

 private:
  explicit ByteSource(std::unique_ptr<internal::RawInput> raw, const Limits& limits);
  static absl::StatusOr<std::unique_ptr<ByteSource>> Start(std::unique_ptr<internal::RawInput> raw,
                                                           const Limits& limits);
  void Fill(size_t n);
  void Fail(absl::Status status);

  std::unique_ptr<internal::RawInput> raw_;
  std::unique_ptr<internal::Decoder> decoder_;  // null: not compressed
  Limits limits_;
  Encoding encoding_ = Encoding::kPlain;
  const char* begin_ = nullptr;  // unread bytes: [begin_, end_)
  const char* end_ = nullptr;
  uint64_t loaded_ = 0;  // number of bytes ever made available
  bool ended_ = false;   // the input has nothing after end_
  absl::Status status_;
  std::unique_ptr<char[]> buffer_;  // of streams
  size_t capacity_ = 0;
};

}  // namespace memreplay

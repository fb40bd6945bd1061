// The bytes of one input, read once from front to back: a mapped file, or the
// decompressed content of a gzip or zstd file. Which it is, is told from the
// first bytes, never from the name.
#ifndef MEMREPLAY_TRACE_BYTES_BYTE_SOURCE_H_
#define MEMREPLAY_TRACE_BYTES_BYTE_SOURCE_H_

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

// The bytes of a file or of memory, decompressed, read through a window that moves forward.
class ByteSource {
 public:
  enum class Encoding : uint8_t { kPlain, kGzip, kZstd };

  // What compressed input may become. A small file that unpacks to gigabytes
  // is an attack: beyond `free_bytes`, output may be at most `max_ratio` times
  // the compressed bytes read so far.
  struct Limits {
    uint64_t max_bytes = uint64_t{64} << 30;
    uint64_t max_ratio = 4096;
    uint64_t free_bytes = uint64_t{64} << 20;
  };

  // Regular files are mapped; pipes and character devices are read as they
  // come, and "-" is standard input. Errors: NotFound, PermissionDenied, InvalidArgument (a
  // directory, an empty file); they name the path. A mapped file must not shrink meanwhile.
  static absl::StatusOr<std::unique_ptr<ByteSource>> Open(const std::string& path,
                                                          const Limits& limits);
  static absl::StatusOr<std::unique_ptr<ByteSource>> Open(const std::string& path) {
    return Open(path, Limits());
  }
  // The same over bytes in memory, compressed or not.
  static absl::StatusOr<std::unique_ptr<ByteSource>> FromBytes(std::string bytes,
                                                               const Limits& limits);
  static absl::StatusOr<std::unique_ptr<ByteSource>> FromBytes(std::string bytes) {
    return FromBytes(std::move(bytes), Limits());
  }

  ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  // All unread bytes that are at hand, at least `n` of them unless the input
  // ends (or fails, see status()) before. Valid until the next call of a
  // non-const member. Memory grows with bytes that exist, never with `n`.
  std::string_view Peek(size_t n) {
    if (static_cast<size_t>(end_ - begin_) < n && !ended_) Fill(n);
    return std::string_view(begin_, static_cast<size_t>(end_ - begin_));
  }
  // Marks the first `n` bytes of what Peek() returned as read.
  void Skip(size_t n) { begin_ += n; }

  // The next line without its '\n' (and '\r'); false at the end of the input or
  // on failure. A last line without '\n' counts. Valid as long as Peek()'s. A
  // line longer than `max_length` is a failure.
  bool ReadLine(std::string_view* line, size_t max_length = size_t{1} << 20);

  // How many (decompressed) bytes were skipped so far.
  uint64_t position() const { return loaded_ - static_cast<uint64_t>(end_ - begin_); }
  // How many bytes are unread; unknown for streams.
  std::optional<uint64_t> remaining() const {
    if (!ended_) return std::nullopt;
    return static_cast<uint64_t>(end_ - begin_);
  }
  // Not OK once decompression or reading failed; then Peek() gives what came
  // before. Check it whenever the input seems to end too early.
  const absl::Status& status() const { return status_; }
  Encoding encoding() const { return encoding_; }

 private:
  explicit ByteSource(std::unique_ptr<internal::RawInput> raw, const Limits& limits);
  static absl::StatusOr<std::unique_ptr<ByteSource>> Start(std::unique_ptr<internal::RawInput> raw,
                                                           const Limits& limits);
  void Fill(size_t n);
  void Fail(absl::Status status);

  std::unique_ptr<internal::RawInput> raw_;
  std::unique_ptr<internal::Decoder> decoder_;  // null: plain
  Limits limits_;
  Encoding encoding_ = Encoding::kPlain;
  const char* begin_ = nullptr;  // unread bytes: [begin_, end_)
  const char* end_ = nullptr;
  uint64_t loaded_ = 0;  // bytes ever made available
  bool ended_ = false;   // nothing comes after end_
  absl::Status status_;
  std::unique_ptr<char[]> buffer_;  // of streams
  size_t capacity_ = 0;
};

}  // namespace memreplay

#endif  // MEMREPLAY_TRACE_BYTES_BYTE_SOURCE_H_

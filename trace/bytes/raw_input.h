// The undecoded bytes of a file, chunk by chunk, and the decompression of gzip and zstd. Part of
// byte_source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace memreplay::internal {

// The undecoded, perhaps compressed bytes of a file or of memory.
class RawInput {
 public:
  static absl::StatusOr<std::unique_ptr<RawInput>> Open(const std::string& path);
  static std::unique_ptr<RawInput> FromBytes(std::string bytes);
  ~RawInput();
  RawInput(const RawInput&) = delete;
  RawInput& operator=(const RawInput&) = delete;

  // Returns unread bytes; an empty view means that the input has ended. For files and memory the
  // first view is the whole input.
  absl::StatusOr<std::string_view> Peek();
  void Skip(size_t n) {
    unread_.remove_prefix(n);
    position_ += n;
  }
  uint64_t position() const { return position_; }  // bytes skipped
  // Takes from memory what it has of these bytes of a mapped file; other bytes stay as they are.
  void Drop(std::string_view bytes) const;
  // Returns true if Peek() returned the whole input, which stays valid while this object lives.
  bool is_whole() const { return fd_ < 0; }

 private:
  RawInput() = default;

  int fd_ = -1;              // of pipes and devices
  void* mapping_ = nullptr;  // of regular files
  size_t mapping_size_ = 0;
  std::string owned_;  // FromBytes, and the buffer of pipes
  std::string_view unread_;
  uint64_t position_ = 0;
};

// Decompresses a stream of bytes.
class Decoder {
 public:
  virtual ~Decoder() = default;
  // Writes up to `capacity` bytes (at least 1) to `out` and returns how many; 0 only at the proper
  // end of the data. Error: DataLoss for damaged or truncated data, with the compressed offset.
  virtual absl::StatusOr<size_t> Decode(RawInput& input, char* out, size_t capacity) = 0;
};

// Return decoders that treat concatenated members (frames) as one stream; zero bytes may follow the
// last.
std::unique_ptr<Decoder> NewGzipDecoder();
std::unique_ptr<Decoder> NewZstdDecoder();

}  // namespace memreplay::internal

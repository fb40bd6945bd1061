// Decompression of gzip and zstd streams. Part of byte_source.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "trace/bytes/raw_input.h"

namespace memreplay::internal {

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

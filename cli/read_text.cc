#include "cli/read_text.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>

#include "report/ask/diff.h"
#include "trace/bytes/byte_source.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr size_t kEnd = size_t{64} << 20;
constexpr uint64_t kLongestStream = uint64_t{1} << 30;
constexpr size_t kLookedAt = 4096;

absl::StatusOr<std::string> Read(const std::string& path, uint64_t most, bool is_end_enough) {
  ByteSource::Limits limits;
  limits.max_bytes = is_end_enough ? kLongestStream : most;
  absl::StatusOr<std::unique_ptr<ByteSource>> source = ByteSource::Open(
      path == "-" ? "/dev/stdin" : path, is_end_enough ? ByteSource::Limits() : limits);
  if (!source.ok()) return source.status();
  const bool is_stream = !(*source)->remaining().has_value();
  std::string text;
  uint64_t seen = 0;
  for (std::string_view piece = (*source)->Peek(1); !piece.empty(); piece = (*source)->Peek(1)) {
    seen += piece.size();
    if (is_stream && seen > limits.max_bytes) {
      return absl::ResourceExhaustedError(
          StrCat(path, ": expected at most ", limits.max_bytes, " bytes, found more"));
    }
    const size_t length = piece.size();
    if (is_end_enough) piece.remove_prefix(piece.size() - std::min(piece.size(), kEnd));
    text.append(piece);
    (*source)->Skip(length);
    if (is_end_enough && text.size() > 2 * kEnd) text.erase(0, text.size() - kEnd);
  }
  if (!(*source)->status().ok()) {
    return absl::Status((*source)->status().code(),
                        StrCat(path, ": ", ToStd((*source)->status().message())));
  }
  return text;
}

}  // namespace

absl::StatusOr<std::string> ReadText(const std::string& path, uint64_t most) {
  return Read(path, most, false);
}

absl::StatusOr<std::string> ReadEnd(const std::string& path) { return Read(path, 0, true); }

absl::StatusOr<bool> StartsLikeReport(const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error)) {
    return false;
  }
  const absl::StatusOr<std::unique_ptr<ByteSource>> source = ByteSource::Open(path);
  if (!source.ok()) return source.status();
  return LooksLikeReport((*source)->Peek(kLookedAt));
}

}  // namespace memreplay

#include "cli/io/read_text.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>

#include "report/ask/diff.h"
#include "trace/bytes/byte_source.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr size_t kLookedAt = 4096;

}  // namespace

absl::StatusOr<std::string> ReadText(const std::string& path, uint64_t most) {
  ByteSource::Limits limits;
  limits.max_bytes = most;
  ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> source, ByteSource::Open(path, limits));
  const bool is_stream = !source->remaining().has_value();
  std::string text;
  for (std::string_view piece = source->Peek(1); !piece.empty(); piece = source->Peek(1)) {
    if (is_stream && text.size() + piece.size() > most) {
      return absl::ResourceExhaustedError(
          StrCat(path, ": expected at most ", most, " bytes, found more"));
    }
    text.append(piece);
    source->Skip(piece.size());
  }
  if (!source->status().ok()) return Within(path, source->status());
  return text;
}

absl::StatusOr<bool> StartsLikeReport(const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error)) {
    return false;
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source, ByteSource::Open(path));
  return LooksLikeReport(source->Peek(kLookedAt));
}

}  // namespace memreplay

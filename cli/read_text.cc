#include "cli/read_text.h"

#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>

#include "report/answer/diff_report.h"
#include "trace/bytes/byte_source.h"

namespace memreplay {
namespace {

constexpr size_t kMaxText = size_t{64} << 20;
constexpr size_t kLookedAt = 4096;

}  // namespace

absl::StatusOr<std::string> ReadText(const std::string& path) {
  absl::StatusOr<std::unique_ptr<ByteSource>> source =
      ByteSource::Open(path == "-" ? "/dev/stdin" : path);
  if (!source.ok()) return source.status();
  std::string text;
  for (std::string_view piece = (*source)->Peek(1); !piece.empty(); piece = (*source)->Peek(1)) {
    text.append(piece);
    (*source)->Skip(piece.size());
    if (text.size() > 2 * kMaxText) text.erase(0, text.size() - kMaxText);
  }
  if (!(*source)->status().ok()) return (*source)->status();
  return text;
}

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

#include "report/words/duration.h"

#include "absl/strings/str_format.h"

namespace memreplay {

std::string FormatDuration(int64_t nanoseconds) {
  const auto value = static_cast<double>(nanoseconds);
  if (nanoseconds < 1000) return absl::StrFormat("%d ns", nanoseconds);
  if (nanoseconds < 1'000'000) return absl::StrFormat("%.1f us", value / 1e3);
  if (nanoseconds < 1'000'000'000) return absl::StrFormat("%.2f ms", value / 1e6);
  return absl::StrFormat("%.2f s", value / 1e9);
}

}  // namespace memreplay

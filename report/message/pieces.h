// Small text functions that several files here need.
#pragma once

#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "report/message/amount.h"
#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {

inline std::string_view Trim(std::string_view text) {
  return ToStd(absl::StripAsciiWhitespace(ToAbsl(text)));
}

inline std::string Size(const Amount& amount) { return FormatSize(amount.bytes); }

}  // namespace memreplay

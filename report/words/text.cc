#include "report/words/text.h"

#include <algorithm>
#include <cstdint>

#include "trace/value/utf8.h"

namespace memreplay {
namespace {

// Returns whether a terminal obeys a character or changes direction for it, beyond ASCII: the C1
// controls (U+0080 to U+009F), marks, embeddings, overrides and isolates of direction, line and
// paragraph separators, the invisible operators and tags.
bool IsControl(std::string_view sequence) {
  if (sequence.size() < 2) {
    const auto byte = static_cast<uint8_t>(sequence[0]);
    return byte < 0x20 || byte == 0x7f;
  }
  const auto bits = [&](size_t i) { return static_cast<uint32_t>(sequence[i]) & 0x3f; };
  const auto first = static_cast<uint8_t>(sequence[0]);
  const uint32_t point = sequence.size() == 2 ? (first & 0x1fu) << 6 | bits(1)
                         : sequence.size() == 3
                             ? (first & 0x0fu) << 12 | bits(1) << 6 | bits(2)
                             : (first & 0x07u) << 18 | bits(1) << 12 | bits(2) << 6 | bits(3);
  return point < 0xa0 || point == 0x61c || (point >= 0x200e && point <= 0x200f) ||
         (point >= 0x2028 && point <= 0x202e) || (point >= 0x2060 && point <= 0x206f) ||
         point == 0xfeff || (point >= 0xe0000 && point <= 0xe007f);
}

}  // namespace

std::string CleanText(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const auto rest = std::find_if(text.begin(), text.end(),
                                   [](char each) { return each < 0x20 || each > 0x7e; });
    clean.append(text.begin(), rest);
    text.remove_prefix(static_cast<size_t>(rest - text.begin()));
    if (text.empty()) break;
    const size_t length = Utf8Length(text);
    if (length == 0 || IsControl(text.substr(0, length))) {
      clean += '?';
    } else {
      clean += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return clean;
}

std::string CleanText(std::string_view text, size_t most) {
  return text.size() > most ? CleanText(text.substr(0, most)) + " ..." : CleanText(text);
}

}  // namespace memreplay

#include "trace/value/utf8.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace memreplay {

size_t Utf8Length(std::string_view text, bool surrogates_too) {
  const auto byte = [&](size_t i) -> uint8_t { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xc2 && first < 0xe0   ? 2
                        : first >= 0xe0 && first < 0xf0 ? 3
                        : first >= 0xf0 && first < 0xf5 ? 4
                                                        : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  if (first == 0xe0 && byte(1) < 0xa0) return 0;
  if (first == 0xed && byte(1) > 0x9f && !surrogates_too) return 0;
  if (first == 0xf0 && byte(1) < 0x90) return 0;
  if (first == 0xf4 && byte(1) > 0x8f) return 0;
  return length;
}

uint32_t CodePoint(std::string_view character) {
  const auto first = static_cast<uint8_t>(character[0]);
  const auto bits = [&](size_t i) { return static_cast<uint32_t>(character[i]) & 0x3f; };
  switch (character.size()) {
    case 1: return first;
    case 2: return (first & 0x1fu) << 6 | bits(1);
    case 3: return (first & 0x0fu) << 12 | bits(1) << 6 | bits(2);
    default: return (first & 0x07u) << 18 | bits(1) << 12 | bits(2) << 6 | bits(3);
  }
}

bool IsControl(uint32_t point) {
  struct Range {
    uint32_t first, last;
  };
  // Unicode's "Default_Ignorable_Code_Point", controls, separators and noncharacters, ascending.
  constexpr Range kRanges[] = {
      {0, 0x1f},          {0x7f, 0x9f},     {0xad, 0xad},       {0x34f, 0x34f},
      {0x61c, 0x61c},     {0x115f, 0x1160}, {0x17b4, 0x17b5},   {0x180b, 0x180f},
      {0x200b, 0x200f},   {0x2028, 0x202e}, {0x2060, 0x206f},   {0x3164, 0x3164},
      {0xfdd0, 0xfdef},   {0xfe00, 0xfe0f}, {0xfeff, 0xfeff},   {0xffa0, 0xffa0},
      {0xfff0, 0xfffb},   {0xfffe, 0xffff}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
      {0xe0000, 0xe0fff},
  };
  return std::any_of(std::begin(kRanges), std::end(kRanges), [&](const Range& range) {
    return range.first <= point && point <= range.last;
  });
}

std::string_view CutText(std::string_view text, size_t most) {
  if (text.size() <= most) return text;
  size_t end = most;
  while (end > 0 && most - end < 3 && (static_cast<uint8_t>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

std::string ReplaceBadUtf8(std::string_view text, std::string_view replacement,
                           bool surrogates_too) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const size_t length = Utf8Length(text, surrogates_too);
    clean.append(length == 0 ? replacement : text.substr(0, length));
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return clean;
}

}  // namespace memreplay

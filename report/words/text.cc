#include "report/words/text.h"

#include <algorithm>

#include "trace/value/utf8.h"

namespace memreplay {
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
    if (length == 0 || IsControl(CodePoint(text.substr(0, length)))) {
      clean += '?';
    } else {
      clean += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return clean;
}

std::string CleanText(std::string_view text, size_t most) {
  return text.size() > most ? CleanText(CutText(text, most)) + " ..." : CleanText(text);
}

}  // namespace memreplay

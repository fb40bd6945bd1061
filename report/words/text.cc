#include "report/words/text.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "absl/algorithm/container.h"
#include "trace/value/utf8.h"

namespace memreplay {
namespace {

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string CleanText(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const auto rest = absl::c_find_if(text, [](char each) { return each < 0x20 || each > 0x7e; });
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

std::string ShellWord(std::string_view word) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(word);
  }
  std::string quoted = "'";
  for (const char sign : word) {
    if (sign == '\'') {
      quoted += "'\\''";
    } else {
      quoted += sign;
    }
  }
  return quoted + "'";
}

std::string_view NearestWord(std::string_view word, absl::Span<const std::string_view> candidates) {
  std::string_view nearest;
  size_t best = std::min(std::max<size_t>(2, word.size() / 3), word.size() / 2) + 1;
  for (std::string_view candidate : candidates) {
    size_t distance = EditDistance(word, candidate);
    // An abbreviation is near, however short it is.
    if (word.size() >= 3 && candidate.substr(0, word.size()) == word) distance = 1;
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace memreplay

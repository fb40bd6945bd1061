#include "report/message/passage.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "report/message/amount.h"

namespace memreplay {
namespace {

constexpr size_t kMaxPrefix = 160;
constexpr size_t kMaxLine = 8192;
constexpr size_t kMaxTime = 40;
// Lines that were wrapped are this long.
constexpr size_t kNarrowest = 60;
constexpr size_t kWidest = 200;
// Lines may be half prefix, and colours take room.
constexpr size_t kRawBytes = 6;

bool IsDigitByte(char c) { return c >= '0' && c <= '9'; }
bool IsBlankByte(char c) { return static_cast<unsigned char>(c) <= ' ' || c == '\x7f'; }
bool IsOneOf(char c, std::string_view bytes) { return bytes.find(c) != std::string_view::npos; }

// Returns the length of a colour or another command to a terminal that `text` begins with; 0 if it
// begins with none. Pages and mail drop the escape and leave "[1;36m".
size_t CommandLength(std::string_view text) {
  size_t at = 0;
  for (const std::string_view escape : {"\x1b", "^[", "\\x1b", "\\u001b", "\\033"}) {
    if (!text.starts_with(escape)) continue;
    at = escape.size();
    break;
  }
  if (at == 1 && text.size() > 1 && text[1] == ']') {
    const size_t end = text.substr(0, kMaxLine).find_first_of("\x07\x1b\n");
    return end == std::string_view::npos ? 2 : end + (text[end] == '\n' ? 0 : 1);
  }
  if (at >= text.size() || text[at] != '[') return at == 1 ? 1 : 0;
  size_t end = at + 1;
  while (end < text.size() && end < at + 16 && (IsDigitByte(text[end]) || IsOneOf(text[end], ";?")))
    ++end;
  if (end == text.size()) return 0;  // the rest is on the next line
  if (text[end] == 'm' || (at > 0 && absl::ascii_isalpha(text[end]))) {
    return end + 1;
  }
  return at > 0 ? end : 0;
}

Traced WithoutCommands(const Traced& traced) {
  const std::string_view text = traced.text;
  Traced plain;
  for (size_t at = 0; at < text.size();) {
    const size_t command = IsOneOf(text[at], "\x1b^\\[") ? CommandLength(text.substr(at)) : 0;
    if (command == 0) plain.Add(text[at], traced.from[at]);
    at += std::max<size_t>(command, 1);
  }
  return plain;
}

// Returns a line without colours, and without the right border of a box.
Traced PlainLine(std::string_view text, size_t begin, size_t end) {
  Traced line = {std::string(text.substr(begin, end - begin)), std::vector<size_t>(end - begin)};
  std::iota(line.from.begin(), line.from.end(), begin);
  line = WithoutCommands(line);
  constexpr std::string_view kBorder = "\u2502";
  std::string_view kept = line.text;
  while (!kept.empty() && IsBlankByte(kept.back())) kept.remove_suffix(1);
  if (kept.ends_with(kBorder)) line.Resize(kept.size() - kBorder.size());
  return line;
}

// Returns the length of a time or a date that `text` begins with; 0 if it begins with none.
size_t TimeLength(std::string_view text) {
  size_t end = 0;
  while (end < text.size() && end < kMaxTime &&
         (IsDigitByte(text[end]) || IsOneOf(text[end], ":.,-/TZ+"))) {
    ++end;
  }
  const std::string_view chunk = text.substr(0, end);
  for (size_t colon = chunk.find(':'); colon != std::string_view::npos;
       colon = chunk.find(':', colon + 1)) {
    if (colon > 0 && colon + 1 < end && IsDigitByte(chunk[colon - 1]) &&
        IsDigitByte(chunk[colon + 1])) {
      return end;
    }
  }
  const bool is_date = end > 5 && chunk.find_first_not_of("0123456789") == 4 &&
                       IsOneOf(chunk[4], "-/") && IsDigitByte(chunk[5]);
  return is_date ? end : 0;
}

// What two lines begin with.
struct SharedPrefix {
  size_t in_a = 0;
  size_t in_b = 0;
  bool is_same = true;  // but for times
};

bool HasMarks(std::string_view prefix) {
  return prefix.find_first_of(":|>])") != std::string_view::npos;
}

SharedPrefix Compare(std::string_view a, std::string_view b) {
  a = a.substr(0, kMaxPrefix);
  b = b.substr(0, kMaxPrefix);
  SharedPrefix shared;
  bool is_same = true;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (IsDigitByte(a[i]) && IsDigitByte(b[j])) {
      const size_t time = TimeLength(a.substr(i));
      const size_t other = TimeLength(b.substr(j));
      if (time > 0 && other > 0) {
        i += time;
        j += other;
        continue;
      }
      const size_t end_i = std::min(a.find_first_not_of("0123456789", i), a.size());
      const size_t end_j = std::min(b.find_first_not_of("0123456789", j), b.size());
      if (a.substr(i, end_i - i) != b.substr(j, end_j - j)) {
        // Behind a prefix, "15.66 GiB" is no number of a process.
        const bool is_label = end_i < a.size() && IsOneOf(a[end_i], ":])|");
        if (i > 0 && IsBlankByte(a[i - 1]) && !is_label && HasMarks(b.substr(0, shared.in_b)))
          break;
        is_same = false;
      }
      i = end_i;
      j = end_j;
      continue;
    }
    if (a[i] != b[j]) break;
    const bool ends = IsOneOf(a[i], " \t:|>])");
    ++i;
    ++j;
    if (ends) shared = {i, j, is_same};
  }
  // Two lines may begin with the same word.
  if (!HasMarks(b.substr(0, shared.in_b))) shared.in_a = shared.in_b = 0;
  return shared;
}

// Adds text without its blanks.
class Squeezer {
 public:
  void Add(const Traced& line) {
    const std::string_view text = line.text;
    for (size_t i = 0; i < text.size(); ++i) {
      const bool is_escaped = text[i] == '\\' && i + 1 < text.size() && text[i + 1] == 'n';
      if (is_escaped || IsBlankByte(text[i])) {
        has_blank_ = true;
        has_break_ = has_break_ || is_escaped || text[i] == '\n';
        i += is_escaped ? 1 : 0;
        continue;
      }
      AddByte(text[i], line.from[i]);
    }
  }
  void Break() { has_blank_ = has_break_ = true; }
  // Ends the text after a blank that it ends with, but not where a number may go on.
  void End(bool may_be_broken) {
    if (has_blank_ && !(has_break_ && may_be_broken))
      out_.Add(' ', out_.from.empty() ? 0 : out_.from.back());
  }
  const Traced& out() const { return out_; }

 private:
  void AddByte(char c, size_t place) {
    const std::string& text = out_.text;
    if (has_blank_ && !text.empty()) {
      const bool in_unit = has_break_ && IsOneOf(text.back(), "KMGTkmgt") && IsOneOf(c, "iBb");
      if ((!in_unit && ReadAmountBackwards(text).has_value()) ||
          (!has_break_ && IsDigitByte(text.back()) && IsDigitByte(c))) {
        out_.Add(' ', place);
      }
    }
    has_blank_ = has_break_ = false;
    out_.Add(c, place);
  }

  Traced out_;
  bool has_blank_ = false;
  bool has_break_ = false;
};

bool IsEmptyLine(std::string_view line) { return absl::c_all_of(line, IsBlankByte); }

size_t LineEnd(std::string_view text, size_t at) {
  return std::min({text.find_first_of("\r\n", at), text.size(), at + kMaxLine});
}

size_t LineBegin(std::string_view text, size_t at) {
  const size_t earliest = at - std::min(at, kMaxLine);
  size_t begin = at;
  while (begin > earliest && !IsOneOf(text[begin - 1], "\r\n")) --begin;
  return begin;
}

// Returns whether the last line of a text may have been broken at its end: it is as wide as a
// terminal, and no line before it is wider.
bool MayBeBroken(std::string_view text) {
  while (!text.empty() && IsOneOf(text.back(), "\r\n")) text.remove_suffix(1);
  size_t begin = LineBegin(text, text.size());
  const size_t length = text.size() - begin;
  if (length < kNarrowest || length > kWidest) return false;
  for (int lines = 0; begin > 0 && lines < 50; ++lines) {
    const size_t end = begin - 1;
    begin = LineBegin(text, end);
    if (end - begin > length) return false;
  }
  return true;
}

}  // namespace

void Traced::EraseFirst(size_t count) {
  text.erase(0, count);
  from.erase(from.begin(), from.begin() + static_cast<ptrdiff_t>(count));
}

void Traced::Resize(size_t size) {
  text.resize(size);
  from.resize(size);
}

Passage PassageAround(std::string_view text, size_t at, size_t before, size_t after) {
  const size_t begin = LineBegin(text, at);
  Traced head = PlainLine(text, begin, at);
  // What the line of `at` has in common with the line before it goes from both.
  std::vector<Traced> above;
  size_t known = head.text.size();
  size_t own_prefix = 0;
  for (size_t end = begin; end > 0 && known < before && above.size() < 8;) {
    const size_t first = LineBegin(text, end - 1);
    Traced line = PlainLine(text, first, end - 1);
    end = first;
    if (IsEmptyLine(line.text)) continue;
    const SharedPrefix shared = Compare(head.text, line.text);
    if (!shared.is_same) continue;
    own_prefix = std::max(own_prefix, shared.in_a);
    line.EraseFirst(shared.in_b);
    known += line.text.size();
    above.push_back(std::move(line));
  }
  Squeezer squeezer;
  for (size_t i = above.size(); i > 0; --i) {
    squeezer.Add(above[i - 1]);
    squeezer.Break();
  }
  const std::string whole_head = head.text;
  head.EraseFirst(own_prefix);
  squeezer.Add(head);
  const size_t place = squeezer.out().text.size();

  size_t lines = 0;
  bool is_repeated = false;  // the prefix, on every line of the text
  const size_t last = std::min(text.size(), at + kRawBytes * after + kMaxLine);
  for (size_t next = at; next < last && squeezer.out().text.size() < place + after;) {
    const size_t end = LineEnd(text, next);
    Traced line = PlainLine(text, next, end);
    next = end < text.size() && IsOneOf(text[end], "\r\n") ? end + 1 : end;
    if (lines > 0) {
      if (IsEmptyLine(line.text)) continue;
      const SharedPrefix shared = Compare(whole_head, line.text);
      if (!shared.is_same) continue;
      if (lines == 1) is_repeated = shared.in_b > 0;
      if (is_repeated != (shared.in_b > 0)) break;
      line.EraseFirst(shared.in_b);
    }
    ++lines;
    squeezer.Add(line);
    if (next > end) squeezer.Break();
  }
  squeezer.End(last == text.size() && MayBeBroken(text));
  // Commands that were broken are whole now.
  Passage passage = {WithoutCommands(squeezer.out()), 0};
  passage.at = static_cast<size_t>(absl::c_lower_bound(passage.from, at) - passage.from.begin());
  passage.Resize(std::min(passage.text.size(), passage.at + after));
  const size_t extra = passage.at - std::min(passage.at, before);
  passage.EraseFirst(extra);
  passage.at -= extra;
  return passage;
}

std::string FromUtf16(std::string_view text, bool is_little) {
  std::string out;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    const auto first = static_cast<uint8_t>(text[i]);
    const auto second = static_cast<uint8_t>(text[i + 1]);
    const unsigned point = is_little ? first | second << 8 : first << 8 | second;
    if (point < 0x80) {
      out += static_cast<char>(point);
    } else if (point < 0x800) {
      out += static_cast<char>(0xc0 | point >> 6);
      out += static_cast<char>(0x80 | (point & 0x3f));
    } else {
      out += static_cast<char>(0xe0 | point >> 12);
      out += static_cast<char>(0x80 | (point >> 6 & 0x3f));
      out += static_cast<char>(0x80 | (point & 0x3f));
    }
  }
  return out;
}

std::string WithoutBlanks(std::string_view words) {
  std::string kept;
  absl::c_copy_if(words, std::back_inserter(kept), [](char c) { return !IsBlankByte(c); });
  return kept;
}

}  // namespace memreplay

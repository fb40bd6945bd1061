#include "cli/io/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "absl/algorithm/container.h"
#include "report/words/text.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr int kMinWidth = 40;   // narrower terminals are taken as this wide
constexpr size_t kFilled = 50;  // a paragraph's line that the next belongs to is longer
constexpr size_t kWidestLabel =
    30;  // of a line's first column, so that the rest stands to its right

// Returns the number of characters, not of bytes, in UTF-8.
size_t WidthOf(std::string_view text) {
  return static_cast<size_t>(absl::c_count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

// Returns the column in which the rest of a broken line starts.
size_t HangingIndent(std::string_view line) {
  const size_t begin = std::min(line.find_first_not_of(' '), line.size());
  const size_t gap = line.find("  ", begin);
  if (gap != line.npos) {
    const size_t second = line.find_first_not_of(' ', gap);
    if (second != line.npos && second <= kWidestLabel) return second;
  }
  return begin + 4;
}

// Returns how much of a word that is wider than a line goes into one: up to a place where paths and
// lists can be broken.
size_t PartOf(std::string_view word, size_t width) {
  size_t end = 0;
  size_t best = 0;
  for (size_t column = 0; end < word.size(); ++end) {
    if ((word[end] & 0xc0) != 0x80 && ++column > width) break;
    if (word[end] == '/' || word[end] == ',' || word[end] == '\\') best = end + 1;
  }
  return best > 0 ? best : end;
}

std::string Wrapped(std::string_view line, size_t width, size_t hanging) {
  if (WidthOf(line) <= width) return std::string(line);
  const size_t indent = std::min(hanging, width * 2 / 3);
  std::string out;
  size_t column = 0;
  bool is_first = true;
  for (size_t at = 0; at < line.size();) {
    const size_t end = std::min(line.find(' ', at), line.size());
    const size_t spaces_end = std::min(line.find_first_not_of(' ', end), line.size());
    std::string_view word = line.substr(at, end - at);
    if (!is_first && column + WidthOf(word) > width && column > indent) {
      out.erase(out.find_last_not_of(' ') + 1);
      out += '\n';
      out.append(indent, ' ');
      column = indent;
    }
    while (column + WidthOf(word) > width) {
      const size_t part = PartOf(word, width - column);
      StrAppend(&out, word.substr(0, part), "\n", std::string(indent, ' '));
      word.remove_prefix(part);
      column = indent;
    }
    StrAppend(&out, word, line.substr(end, spaces_end - end));
    column += WidthOf(word) + spaces_end - end;
    is_first = is_first && word.empty();
    at = spaces_end;
  }
  out.erase(out.find_last_not_of(' ') + 1);
  return out;
}

// Returns the escape sequence for a line, "" for none.
std::string_view ColorOf(Tone tone) {
  switch (tone) {
    case Tone::kPlain: return "";
    case Tone::kAnswer: return "\x1b[1m";
    case Tone::kBadAnswer: return "\x1b[1;31m";
    case Tone::kBad: return "\x1b[31m";
    case Tone::kGood: return "\x1b[32m";
  }
  return "";
}

}  // namespace

int WidthOfTerminal(int descriptor) {
  winsize size = {};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 0;
  return std::max<int>(size.ws_col, kMinWidth);
}

std::string ProgressLine(std::string_view activity, std::string_view rest, int width) {
  constexpr std::string_view kName = "memreplay: ";
  std::string line = StrCat(kName, activity, rest);
  if (width <= 0 || WidthOf(line) < static_cast<size_t>(width)) return line;
  const size_t others = kName.size() + WidthOf(rest) + 4;  // the dots, and one column free
  size_t kept = static_cast<size_t>(width) > others ? static_cast<size_t>(width) - others : 0;
  size_t begin = activity.size();
  for (; begin > 0 && kept > 0; --begin) kept -= (activity[begin - 1] & 0xc0) != 0x80 ? 1 : 0;
  while (begin < activity.size() && (activity[begin] & 0xc0) == 0x80) ++begin;
  return StrCat(kName, "...", activity.substr(begin), rest);
}

TerminalLook LookOfOutput() {
  TerminalLook look;
  if (!isatty(STDOUT_FILENO)) return look;
  look.is_terminal = true;
  look.width = WidthOfTerminal(STDOUT_FILENO);
  const char* const term = std::getenv("TERM");
  const char* const no_color = std::getenv("NO_COLOR");
  look.colors = (no_color == nullptr || *no_color == '\0') && term != nullptr &&
                std::string_view(term) != "dumb";
  return look;
}

std::string ForTerminal(const Text& answer, const TerminalLook& look) {
  std::string out;
  auto toned = answer.toned.begin();
  for (std::string_view text = answer.text; !text.empty();) {
    const size_t begin = answer.text.size() - text.size();
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string line = CleanText(text.substr(0, end));
    const bool has_tone = toned != answer.toned.end() && toned->begin == begin;
    const Tone tone = has_tone ? (toned++)->tone : Tone::kPlain;
    const std::string_view color = look.colors ? ColorOf(tone) : "";
    out += color;
    out +=
        look.width > 0 ? Wrapped(line, static_cast<size_t>(look.width), HangingIndent(line)) : line;
    if (!color.empty()) out += "\x1b[0m";
    if (end < text.size()) out += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string HelpForTerminal(std::string_view text, int width) {
  if (width == 0) return std::string(text);
  std::string out;
  std::string open;  // a line to which the next may belong
  const auto close = [&] {
    if (!open.empty()) {
      const bool is_prose = open[0] != ' ' && !open.starts_with("usage:");
      StrAppend(&out, Wrapped(open, static_cast<size_t>(width), is_prose ? 0 : HangingIndent(open)),
                "\n");
    }
    open.clear();
  };
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t begin = std::min(line.find_first_not_of(' '), line.size());
    // The next line of a paragraph, or a line below the second column of the previous one.
    const bool goes_on = !open.empty() && !line.empty() &&
                         (begin == 0 ? open[0] != ' ' && WidthOf(open) > kFilled
                                     : begin > 8 && begin == HangingIndent(open));
    if (goes_on) {
      StrAppend(&open, " ", line.substr(begin));
      continue;
    }
    close();
    if (line.empty()) out += '\n';
    open = line;
  }
  close();
  return out;
}

}  // namespace memreplay

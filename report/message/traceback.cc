// Reads Python's tracebacks as interpreters, IPython and logs print them.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "report/message/amount.h"
#include "report/message/facts.h"
#include "report/message/rows.h"
#include "trace/value/strings.h"
#include "trace/value/utf8.h"

namespace memreplay {
namespace {

constexpr size_t kMaxFrames = 400;
constexpr size_t kMaxFrameLine = 1000;
constexpr size_t kMaxFile = 400;
constexpr size_t kMaxCode = 160;

bool Has(std::string_view text, std::string_view words) {
  return text.find(words) != std::string_view::npos;
}

bool HasAny(std::string_view text, std::string_view words) {
  for (const absl::string_view word : absl::StrSplit(ToAbsl(words), '|')) {
    if (Has(text, ToStd(word))) return true;
  }
  return false;
}

bool IsInstalled(std::string_view file) {
  return absl::c_any_of(kInstalled, [&](std::string_view part) { return Has(file, part); });
}

// Returns whether a line computes nothing before it calls backward(), where it may have failed too.
bool CallsBackwardAlone(std::string_view code) {
  const size_t call = code.find(".backward(");
  return call != std::string_view::npos && !Has(code.substr(0, call), "(");
}

std::string_view WordAt(std::string_view text) {
  size_t end = 0;
  while (end < text.size() && (absl::ascii_isalnum(text[end]) || text[end] == '_' ||
                               text[end] == '<' || text[end] == '>' || text[end] == '.')) {
    ++end;
  }
  return text.substr(0, end);
}

int64_t LineNumber(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  int64_t line = 0;
  if (digits == 0 || digits > 9 || !absl::SimpleAtoi(ToAbsl(text.substr(0, digits)), &line))
    return 0;
  return line;
}

// Reads `File "train.py", line 12, in main`, also after a log's prefix; what precedes it is
// `indent`.
bool ReadPlainFrame(std::string_view line, SourceFrame* frame, size_t* indent) {
  constexpr std::string_view kFile = "File \"";
  const size_t at = line.find(kFile);
  if (at == std::string_view::npos) return false;
  const std::string_view rest = line.substr(at + kFile.size());
  const size_t quote = rest.find('"');
  if (quote == std::string_view::npos || quote > kMaxFile) return false;
  constexpr std::string_view kLine = ", line ";
  const std::string_view behind = rest.substr(quote + 1);
  if (!behind.starts_with(kLine)) return false;
  frame->file = rest.substr(0, quote);
  frame->line = LineNumber(behind.substr(kLine.size()));
  const size_t in = behind.find(", in ");
  frame->function = in == std::string_view::npos ? "" : std::string(WordAt(behind.substr(in + 5)));
  *indent = at;
  return true;
}

// Reads the frames of IPython: "File ~/x.py:94, in f(x)", "Cell In[18], line 9", "~/x.py in
// f(self)", "<ipython-input-3-ab> in <module>".
bool ReadNotebookFrame(std::string_view line, SourceFrame* frame) {
  line = Trim(line);
  if (line.starts_with("Cell In[")) {
    const size_t at = line.find("], line ");
    if (at == std::string_view::npos) return false;
    frame->file = line.substr(0, at + 1);
    frame->line = LineNumber(line.substr(at + 8));
    return true;
  }
  if (line.starts_with("File ") && Has(line, ", in ")) {
    const std::string_view place = line.substr(5, line.find(", in ") - 5);
    const size_t colon = place.rfind(':');
    if (colon == std::string_view::npos || colon > kMaxFile) return false;
    frame->file = place.substr(0, colon);
    frame->line = LineNumber(place.substr(colon + 1));
    frame->function = WordAt(line.substr(line.find(", in ") + 5));
    return frame->line > 0;
  }
  const size_t in = line.find(" in ");
  if (in == std::string_view::npos || in == 0 || in > kMaxFile) return false;
  const std::string_view file = line.substr(0, in);
  if (!file.ends_with(".py") && !file.starts_with("<ipython-input")) return false;
  if (Has(file, " ")) return false;
  frame->file = file;
  frame->function = WordAt(line.substr(in + 4));
  return true;
}

// Reads "---> 30     y = model(x)", the line that runs.
bool ReadNotebookCode(std::string_view line, SourceFrame* frame) {
  line = Trim(line);
  const size_t arrow = std::min(line.find_first_not_of('-'), line.size());
  if (arrow < 2 || arrow >= line.size() || line[arrow] != '>') return false;
  const std::string_view rest = Trim(line.substr(arrow + 1));
  const int64_t number = LineNumber(rest);
  if (number == 0) return false;
  frame->line = number;
  frame->code = CutText(Trim(rest.substr(std::min(rest.find(' '), rest.size()))), kMaxCode);
  return true;
}

}  // namespace

void ReadTraceback(std::string_view text, size_t end, Facts* facts) {
  text = text.substr(0, end);
  const size_t begin = text.rfind("Traceback (most recent call last)");
  if (begin != std::string_view::npos) text.remove_prefix(begin);
  std::vector<SourceFrame> frames;
  size_t indent = 0;
  bool wants_code = false;
  while (!text.empty() && frames.size() < kMaxFrames) {
    const size_t newline = std::min(text.find('\n'), text.size());
    const std::string_view line = CutText(text.substr(0, newline), kMaxFrameLine);
    text.remove_prefix(std::min(text.size(), newline + 1));
    SourceFrame frame;
    if (ReadPlainFrame(line, &frame, &indent)) {
      wants_code = !Has(frame.file, "/memreplay_record/");  // those are not the script's
      if (wants_code) frames.push_back(std::move(frame));
    } else if (ReadNotebookFrame(line, &frame)) {
      frames.push_back(std::move(frame));
      wants_code = false;
    } else if (!frames.empty() && wants_code) {
      // Python leaves the line out where it has no source, and the error follows.
      const bool is_code =
          indent == 0 ? !text.empty() : indent < line.size() && absl::ascii_isspace(line[indent]);
      if (is_code) frames.back().code = CutText(Trim(line.substr(indent)), kMaxCode);
      wants_code = false;
    } else if (!frames.empty()) {
      ReadNotebookCode(line, &frames.back());
    }
  }
  ReadFrames(frames, facts);
}

void ReadFrames(const std::vector<SourceFrame>& frames, Facts* facts) {
  for (const SourceFrame& frame : frames) {
    for (const auto& row : kHints) {
      facts->hints[static_cast<size_t>(row.hint)] |=
          HasAny(frame.function, row.function) && HasAny(frame.code, row.code) &&
          HasAny(frame.code, row.also) && HasAny(frame.file, row.file);
    }
    facts->hints[static_cast<size_t>(FrameHint::kBackward)] |=
        frame.function == "backward" ||
        (&frame == &frames.back() && CallsBackwardAlone(frame.code));
    if (IsInstalled(frame.file)) continue;
    facts->frame = frame;
    if (facts->script.empty() && frame.function == "<module>" && frame.file.ends_with(".py")) {
      facts->script = frame.file;
    }
  }
}

}  // namespace memreplay

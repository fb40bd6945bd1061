#include "report/words/lines.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "trace/value/strings.h"

namespace memreplay {

void Text::Add(const Line& line) {
  if (line.tone != Tone::kPlain) toned.push_back({text.size(), line.tone});
  const bool is_answer = line.tone == Tone::kAnswer || line.tone == Tone::kBadAnswer;
  StrAppend(&text, is_answer ? "" : "  ", line.label, line.label.empty() ? "" : ": ", line.text,
            "\n");
}

void Text::AddAll(const std::vector<Line>& lines) {
  for (const Line& line : lines) Add(line);
}

void Text::Append(const Text& more) {
  for (const Toned& line : more.toned) toned.push_back({text.size() + line.begin, line.tone});
  text += more.text;
}

std::vector<Line> ProblemLines(const google::protobuf::RepeatedPtrField<std::string>& faults) {
  std::vector<Line> lines;
  for (const std::string& fault : faults) {
    lines.push_back({"PROBLEM", fault.ends_with('.') ? fault : fault + ".", Tone::kBad});
  }
  return lines;
}

std::string_view SegmentTypeName(proto::SegmentType type) {
  switch (type) {
    case proto::SegmentType::small: return "small";
    case proto::SegmentType::large: return "large";
    default: return "";  // of a later schema
  }
}

std::string PoolName(const google::protobuf::RepeatedField<int64_t>& id) {
  if (id.size() < 2 || (id.Get(0) == 0 && id.Get(1) == 0)) return "default pool";
  return StrCat("pool (", id.Get(0), ",", id.Get(1), ")");
}

std::string StreamName(int64_t stream) {
  return stream == 0 ? "stream 0" : StrCat("stream ", absl::StrFormat("0x%x", stream));
}

std::string Sparkline(const std::vector<int64_t>& values, int64_t highest) {
  constexpr const char* kHeights[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::string line;
  for (const int64_t value : values) {
    // The share is rounded up, so that everything present is visible.
    const double share =
        highest <= 0 ? 0 : static_cast<double>(value) / static_cast<double>(highest);
    const int height = value <= 0 ? 0 : std::clamp(static_cast<int>(share * 8 + 0.999), 1, 8);
    line += kHeights[height];
  }
  return line;
}

}  // namespace memreplay

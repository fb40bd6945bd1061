// Lines that the text of several reports consists of.
#pragma once

#include <google/protobuf/repeated_field.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proto/report.pb.h"
#include "trace/value/strings.h"

namespace memreplay {

// The tone of a line; a terminal has a colour for each.
enum class Tone { kPlain, kAnswer, kBadAnswer, kBad, kGood };

// A line of an answer, before it is rendered.
struct Line {
  std::string label;  // "device 0", "PROBLEM"; "": none
  std::string text;
  Tone tone = Tone::kPlain;
};

// The text of an answer, and the tone of its lines.
struct Text {
  Text() = default;
  Text(std::string plain) : text(std::move(plain)) {}  // NOLINT(google-explicit-constructor)

  // Appends "label: text
  // ". Lines other than answers are indented by two columns.
  void Add(const Line& line);
  void AddAll(const std::vector<Line>& lines);
  void Append(const Text& more);

  // Where a line begins, and its tone.
  struct Toned {
    size_t begin;
    Tone tone;
  };
  std::string text;
  std::vector<Toned> toned;  // ascending; other lines are plain
};

// Returns the reasons why an answer is bad.
std::vector<Line> ProblemLines(const google::protobuf::RepeatedPtrField<std::string>& faults);

// Appends "  label              text
// ", with the text, which is all the pieces, aligned in a column.
template <typename... Pieces>
void AddRow(std::string* out, std::string_view label, const Pieces&... pieces) {
  StrAppend(out, "  ", label, std::string(18 - std::min<size_t>(label.size(), 18), ' '), " ",
            pieces..., "\n");
}

// Returns "request" for a position in a written schedule, "event" for one in a recording.
inline std::string_view PositionNoun(bool is_program) { return is_program ? "request" : "event"; }

// Returns "small" or "large". Protobuf's own function builds the descriptors of all messages first,
// which takes longer than the rest of a short answer's text.
std::string_view SegmentTypeName(proto::SegmentType type);

// Returns "default pool" or "pool (0,1)".
std::string PoolName(const google::protobuf::RepeatedField<int64_t>& id);

// Returns "stream 0" or "stream 0x5a".
std::string StreamName(int64_t stream);

// Returns one character per value, eighths of `highest` high; a value of 0 is a space.
std::string Sparkline(const std::vector<int64_t>& values, int64_t highest);

}  // namespace memreplay

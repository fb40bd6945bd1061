#include "trace/program/program_text.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>

#include "trace/value/strings.h"

namespace memreplay::program {
namespace {

// The maximum nesting, since deeper nesting would overflow the parser's stack.
constexpr int kMaxDepth = 100;

// Keeps only the first error, since later ones result from it.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (!text_.empty()) return;
    // The parser gives no place for errors of a whole message (depth, a missing end).
    text_ = line < 0 ? message : StrCat("line ", line + 1, ", column ", column + 1, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Joins the lines of a message; protobuf shows the place of an error on lines of its own.
std::string OneLine(std::string_view message) {
  std::string line;
  for (const char c : message.substr(0, 400)) {
    if (static_cast<unsigned char>(c) >= 0x20) {
      line += c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

}  // namespace

absl::StatusOr<ProgramText> ParseProgramText(std::string_view text) {
  ProgramText result;
  result.places = std::make_unique<google::protobuf::TextFormat::ParseInfoTree>();
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.WriteLocationsTo(result.places.get());
  parser.SetRecursionLimit(kMaxDepth);
  if (!parser.ParseFromString(std::string(text), &result.program)) {
    return absl::InvalidArgumentError(error.text().empty() ? "not a text proto of a ScheduleProgram"
                                                           : OneLine(error.text()));
  }
  return result;
}

absl::StatusOr<ProgramText> ParseProgramJson(std::string_view text) {
  ProgramText result;
  const auto status =
      google::protobuf::util::JsonStringToMessage(std::string(text), &result.program);
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        StrCat("not JSON of a ScheduleProgram: ",
               OneLine(std::string_view(status.message().data(), status.message().size()))));
  }
  return result;
}

}  // namespace memreplay::program

#include "trace/program/program_text.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "trace/value/status_macros.h"
#include "trace/value/strings.h"
#include "trace/value/utf8.h"

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
  for (const char c : CutText(message, 400)) {
    if (static_cast<unsigned char>(c) >= 0x20) {
      line += c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

// Returns an error if a text is not UTF-8, which the parser does not check.
absl::Status CheckUtf8(const google::protobuf::Message& message,
                       const google::protobuf::TextFormat::ParseInfoTree* places) {
  using Field = google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& values = *message.GetReflection();
  std::vector<const Field*> fields;
  values.ListFields(message, &fields);
  for (const Field* const field : fields) {
    const int count = field->is_repeated() ? values.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      const int index = field->is_repeated() ? i : -1;
      if (field->cpp_type() == Field::CPPTYPE_MESSAGE) {
        RETURN_IF_ERROR(
            CheckUtf8(index < 0 ? values.GetMessage(message, field)
                                : values.GetRepeatedMessage(message, field, index),
                      places == nullptr ? nullptr : places->GetTreeForNested(field, index)));
      } else if (field->cpp_type() == Field::CPPTYPE_STRING) {
        const std::string text = index < 0 ? values.GetString(message, field)
                                           : values.GetRepeatedString(message, field, index);
        const std::string clean = ReplaceBadUtf8(text, "?");
        if (clean == text) continue;
        const auto at = LocationIn(places, field, index);
        return absl::InvalidArgumentError(OneLine(StrCat(
            at.line < 0 ? "" : StrCat("line ", at.line + 1, ", column ", at.column + 1, ": "),
            std::string_view(field->name()), ": expected UTF-8, found \"", clean, "\"")));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

google::protobuf::TextFormat::ParseLocation LocationIn(
    const google::protobuf::TextFormat::ParseInfoTree* places,
    const google::protobuf::FieldDescriptor* field, int index) {
  if (places == nullptr) return {};
  const auto location = places->GetLocation(field, index);
  // A list in brackets has only the place of its beginning.
  return location.line < 0 && index > 0 ? places->GetLocation(field, 0) : location;
}

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
  RETURN_IF_ERROR(CheckUtf8(result.program, result.places.get()));
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

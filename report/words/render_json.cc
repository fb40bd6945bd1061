#include "report/words/render_json.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "trace/bytes/json_scanner.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

namespace pb = ::google::protobuf;
using Field = pb::FieldDescriptor;

// The largest integer up to which a double represents all integers.
constexpr int64_t kMaxExact = int64_t{1} << 53;

class Printer {
 public:
  explicit Printer(bool indented) : indented_(indented) {}

  std::string Print(const pb::Message& message) {
    PrintMessage(message);
    out_ += '\n';
    return std::move(out_);
  }

 private:
  void Open(char bracket) {
    out_ += bracket;
    ++depth_;
    is_first_ = true;
  }

  // Prepares for the next element of the innermost list or object.
  void NextElement() {
    if (!is_first_) out_ += ',';
    is_first_ = false;
    NewLine();
  }

  void Close(char bracket) {
    --depth_;
    if (!is_first_) NewLine();
    out_ += bracket;
    is_first_ = false;
  }

  void NewLine() {
    if (!indented_) return;
    out_ += '\n';
    out_.append(depth_, ' ');
  }

  void Key(std::string_view key) {
    NextElement();
    AppendJsonString(key, &out_);
    out_ += indented_ ? ": " : ":";
  }

  template <typename Number>
  void Integer(Number value) {
    const bool is_exact =
        std::cmp_less_equal(-kMaxExact, value) && std::cmp_less_equal(value, kMaxExact);
    StrAppend(&out_, is_exact ? "" : "\"", value, is_exact ? "" : "\"");
  }

  void Double(double value) {
    out_ += std::isfinite(value) ? FormatDouble(value)
            : std::isnan(value)  ? "\"NaN\""
            : value > 0          ? "\"Infinity\""
                                 : "\"-Infinity\"";
  }

  void PrintMessage(const pb::Message& message) {
    const pb::Descriptor& type = *message.GetDescriptor();
    const pb::Reflection& values = *message.GetReflection();
    Open('{');
    for (int i = 0; i < type.field_count(); ++i) {
      const Field& field = *type.field(i);
      if (field.is_map()) {
        Key(field.name());
        PrintMap(message, field);
      } else if (field.is_repeated()) {
        Key(field.name());
        Open('[');
        for (int k = 0; k < values.FieldSize(message, &field); ++k) {
          NextElement();
          PrintValue(message, field, k);
        }
        Close(']');
      } else if (!field.has_presence() || values.HasField(message, &field)) {
        Key(field.name());
        PrintValue(message, field);
      }
    }
    Close('}');
  }

  void PrintMap(const pb::Message& message, const Field& field) {
    const pb::Reflection& values = *message.GetReflection();
    const Field& key = *field.message_type()->map_key();
    std::vector<const pb::Message*> entries;
    for (int i = 0; i < values.FieldSize(message, &field); ++i) {
      entries.push_back(&values.GetRepeatedMessage(message, &field, i));
    }
    const auto name = [&](const pb::Message& entry) {
      return entry.GetReflection()->GetString(entry, &key);
    };
    absl::c_sort(entries, [&](const auto* a, const auto* b) { return name(*a) < name(*b); });
    Open('{');
    for (const pb::Message* entry : entries) {
      Key(name(*entry));
      PrintValue(*entry, *field.message_type()->map_value());
    }
    Close('}');
  }

  // `index` is that of the element of a repeated field; -1 for any other field.
  void PrintValue(const pb::Message& message, const Field& field, int index = -1) {
    using Values = pb::Reflection;
    const Values& values = *message.GetReflection();
    const auto get = [&](auto single, auto element) {
      return index < 0 ? (values.*single)(message, &field)
                       : (values.*element)(message, &field, index);
    };
    switch (field.cpp_type()) {
      case Field::CPPTYPE_INT32: return Integer(get(&Values::GetInt32, &Values::GetRepeatedInt32));
      case Field::CPPTYPE_INT64: return Integer(get(&Values::GetInt64, &Values::GetRepeatedInt64));
      case Field::CPPTYPE_UINT32:
        return Integer(get(&Values::GetUInt32, &Values::GetRepeatedUInt32));
      case Field::CPPTYPE_UINT64:
        return Integer(get(&Values::GetUInt64, &Values::GetRepeatedUInt64));
      case Field::CPPTYPE_DOUBLE:
        return Double(get(&Values::GetDouble, &Values::GetRepeatedDouble));
      case Field::CPPTYPE_FLOAT:
        return Double(double{get(&Values::GetFloat, &Values::GetRepeatedFloat)});
      case Field::CPPTYPE_BOOL:
        out_ += get(&Values::GetBool, &Values::GetRepeatedBool) ? "true" : "false";
        return;
      case Field::CPPTYPE_ENUM:
        return AppendJsonString(get(&Values::GetEnum, &Values::GetRepeatedEnum)->name(), &out_);
      case Field::CPPTYPE_STRING:
        return AppendJsonString(get(&Values::GetString, &Values::GetRepeatedString), &out_);
      case Field::CPPTYPE_MESSAGE:
        return PrintMessage(index < 0 ? values.GetMessage(message, &field)
                                      : values.GetRepeatedMessage(message, &field, index));
    }
  }

  const bool indented_;
  std::string out_;
  size_t depth_ = 0;
  bool is_first_ = true;
};

}  // namespace

std::string RenderJson(const google::protobuf::Message& message, JsonLayout layout) {
  return Printer(layout == JsonLayout::kIndented).Print(message);
}

absl::Status ParseJson(std::string_view json, std::string_view what, pb::Message* message) {
  pb::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto status =
      pb::util::JsonStringToMessage(pb::StringPiece(json.data(), json.size()), message, options);
  if (status.ok()) return absl::OkStatus();
  // Its other lines show the place.
  const std::string_view error(status.message().data(), status.message().size());
  return InvalidArgument("expected ", what, ": ", error.substr(0, error.find('\n')));
}

}  // namespace memreplay

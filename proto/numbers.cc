#include "proto/numbers.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace memreplay {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr double kMax = 72057594037927936;  // 2^56

// Returns a signed number as far as its size is concerned; 0 for other fields.
double NumberIn(const Message& message, const Reflection& reflection, const FieldDescriptor* field,
                int index) {
  const bool repeated = field->is_repeated();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      return static_cast<double>(repeated ? reflection.GetRepeatedInt64(message, field, index)
                                          : reflection.GetInt64(message, field));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return repeated ? reflection.GetRepeatedDouble(message, field, index)
                      : reflection.GetDouble(message, field);
    default: return 0;
  }
}

}  // namespace

absl::Status CheckNumbers(const Message& message) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        const absl::Status inside =
            CheckNumbers(field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                                              : reflection.GetMessage(message, field));
        if (inside.ok()) continue;
        return absl::InvalidArgumentError(
            absl::StrCat(std::string(field->name()), ".", inside.message()));
      }
      const double number = NumberIn(message, reflection, field, i);
      if (std::abs(number) <= kMax) continue;  // which NaN is not
      return absl::InvalidArgumentError(absl::StrCat(
          std::string(field->name()), ": expected a number within 2^56, found ", number));
    }
  }
  return absl::OkStatus();
}

}  // namespace memreplay

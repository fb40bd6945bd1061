#include "tests/fuzz/mutated_message.h"

#include <google/protobuf/descriptor.h>

#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace memreplay::fuzz {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr double kDoubles[] = {0,
                               -1,
                               0.5,
                               1e-300,
                               1e300,
                               9e18,
                               std::numeric_limits<double>::infinity(),
                               std::numeric_limits<double>::quiet_NaN()};

std::string TextOf(uint64_t by) {
  constexpr const char* kTexts[] = {"",
                                    "expandable_segments:True",
                                    "\x1b[31mred\n\n",
                                    "train.py:12",
                                    ":",
                                    "2.6",
                                    "checkpoint:Block",
                                    "CUDA out of memory. Tried to allocate 20.00 MiB.",
                                    "%s%n{}",
                                    "sweep"};
  if (by % 16 == 15) return std::string(70'000, 'x');
  return kTexts[by % std::size(kTexts)];
}

// Sets one element of a field, or the field if it is not repeated, to `value` or what it stands
// for.
void SetNumber(const FieldDescriptor* field, uint64_t value, Message* message) {
  const Reflection& reflection = *message->GetReflection();
  const bool adds = field->is_repeated();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      adds ? reflection.AddInt32(message, field, static_cast<int32_t>(value))
           : reflection.SetInt32(message, field, static_cast<int32_t>(value));
      break;
    case FieldDescriptor::CPPTYPE_UINT32:
      adds ? reflection.AddUInt32(message, field, static_cast<uint32_t>(value))
           : reflection.SetUInt32(message, field, static_cast<uint32_t>(value));
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      adds ? reflection.AddInt64(message, field, static_cast<int64_t>(value))
           : reflection.SetInt64(message, field, static_cast<int64_t>(value));
      break;
    case FieldDescriptor::CPPTYPE_UINT64:
      adds ? reflection.AddUInt64(message, field, value)
           : reflection.SetUInt64(message, field, value);
      break;
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      const double number = kDoubles[value % std::size(kDoubles)];
      adds ? reflection.AddDouble(message, field, number)
           : reflection.SetDouble(message, field, number);
      break;
    }
    case FieldDescriptor::CPPTYPE_BOOL:
      adds ? reflection.AddBool(message, field, value % 2 != 0)
           : reflection.SetBool(message, field, value % 2 != 0);
      break;
    case FieldDescriptor::CPPTYPE_ENUM: {
      const int known = field->enum_type()
                            ->value(static_cast<int>(
                                value % static_cast<uint64_t>(field->enum_type()->value_count())))
                            ->number();
      adds ? reflection.AddEnumValue(message, field, known)
           : reflection.SetEnumValue(message, field, known);
      break;
    }
    case FieldDescriptor::CPPTYPE_STRING: {
      const std::string text = TextOf(value);
      adds ? reflection.AddString(message, field, text)
           : reflection.SetString(message, field, text);
      break;
    }
    default: break;
  }
}

// Returns a message inside, or the message itself, by walking down.
Message* Inside(Choices& choices, Message* message) {
  for (int depth = 0; depth < 8; ++depth) {
    const Reflection& reflection = *message->GetReflection();
    std::vector<const FieldDescriptor*> fields;
    reflection.ListFields(*message, &fields);
    std::erase_if(fields, [](const FieldDescriptor* field) {
      return field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE;
    });
    const uint64_t choice = choices.Byte();
    if (fields.empty() || choice % 4 == 0) return message;
    const FieldDescriptor* const field = fields[choice / 4 % fields.size()];
    message =
        field->is_repeated()
            ? reflection.MutableRepeatedMessage(
                  message, field,
                  static_cast<int>(choices.Byte() %
                                   static_cast<uint64_t>(reflection.FieldSize(*message, field))))
            : reflection.MutableMessage(message, field);
  }
  return message;
}

uint64_t NumberOf(const Message& message, const FieldDescriptor* field) {
  const Reflection& reflection = *message.GetReflection();
  if (field->is_repeated()) return 1;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return static_cast<uint64_t>(reflection.GetInt32(message, field));
    case FieldDescriptor::CPPTYPE_INT64:
      return static_cast<uint64_t>(reflection.GetInt64(message, field));
    default: return 1;
  }
}

}  // namespace

void FillMessage(Message* message, int depth) {
  const Descriptor& type = *message->GetDescriptor();
  const Reflection& reflection = *message->GetReflection();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* const field = type.field(i);
    for (int time = 0; time < (field->is_repeated() ? 2 : 1); ++time) {
      if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
        SetNumber(field, 1000 * static_cast<uint64_t>(i) + 7 * static_cast<uint64_t>(time) + 1,
                  message);
      } else if (depth > 0) {
        FillMessage(field->is_repeated() ? reflection.AddMessage(message, field)
                                         : reflection.MutableMessage(message, field),
                    depth - 1);
      }
    }
  }
}

void MutateMessage(Choices& choices, Message* message) {
  for (int change = 0; change < 24 && !choices.empty(); ++change) {
    Message* const place = Inside(choices, message);
    const Descriptor& type = *place->GetDescriptor();
    const Reflection& reflection = *place->GetReflection();
    if (type.field_count() == 0) continue;
    const FieldDescriptor* const field =
        type.field(static_cast<int>(choices.Byte() % static_cast<uint64_t>(type.field_count())));
    const uint64_t how = choices.Byte();
    const uint64_t by = choices.Byte();
    const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (how % 8 == 7) {
      reflection.ClearField(place, field);
    } else if (!is_message && field->cpp_type() != FieldDescriptor::CPPTYPE_STRING) {
      SetNumber(field, Changed(NumberOf(*place, field), by, how, by), place);
    } else if (!is_message) {
      SetNumber(field, by, place);
    } else if (field->is_repeated() && reflection.FieldSize(*place, field) > 0) {
      const int last = reflection.FieldSize(*place, field) - 1;
      if (how % 2 == 0) {
        reflection.RemoveLast(place, field);
      } else {
        const std::unique_ptr<Message> copy(
            reflection.GetRepeatedMessage(*place, field, last).New());
        copy->CopyFrom(reflection.GetRepeatedMessage(*place, field, last));
        reflection.AddMessage(place, field)->CopyFrom(*copy);
      }
    }
  }
}

}  // namespace memreplay::fuzz

// Renders a Report as JSON, and reads messages from it. Equal reports give equal bytes.
//
// The JSON is protobuf's mapping with the schema's own field names in the order of the schema, and
// any JSON reader of protobuf accepts it. There is one difference: an integer between -2^53 and
// 2^53 is a number whatever its type (beyond, where JavaScript would round it, a string). Every
// plain field is printed, including an empty list or map; a message only if it is present. The
// value of an enum is its name, in lower case as in the schema. Maps are in key order.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace memreplay {

enum class JsonLayout {
  kIndented,  // with line breaks; ends with a newline
  kOneLine,   // one message per line; ends with a newline
};

// Returns a message as JSON. O(size of the output).
std::string RenderJson(const google::protobuf::Message& message, JsonLayout layout);

// Parses a message without regard to fields that this version does not know. `what` is expected.
// Error: InvalidArgument, in one line. O(size of the text).
absl::Status ParseJson(std::string_view json, std::string_view what,
                       google::protobuf::Message* message);

}  // namespace memreplay

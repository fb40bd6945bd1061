// Report -> JSON, for programs. Equal reports give equal bytes.
//
// It is protobuf's mapping with the schema's own field names in the order of the
// schema, read back by any JSON reader of protobuf, but for one thing: an integer
// between -2^53 and 2^53 is a number whatever its type (beyond, where JavaScript
// would round it, a string). Every plain field is printed, an empty list or map
// too, a message only where there is one. The value of an enum is its name, in
// lower case as in the schema. Maps are in key order.
#ifndef MEMREPLAY_REPORT_WORDS_RENDER_JSON_H_
#define MEMREPLAY_REPORT_WORDS_RENDER_JSON_H_

#include <google/protobuf/message.h>

#include <string>

namespace memreplay {

enum class JsonLayout {
  kIndented,  // for people; ends with a newline
  kOneLine,   // one message per line; ends with a newline
};

// O(size of the output).
std::string RenderJson(const google::protobuf::Message& message, JsonLayout layout);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_WORDS_RENDER_JSON_H_

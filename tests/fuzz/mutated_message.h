// Messages that come from outside as JSON or serialized, with some of their fields changed.
#pragma once

#include <google/protobuf/message.h>

#include "tests/fuzz/choices.h"

namespace memreplay::fuzz {

// Sets every field, those of messages inside too, down to a depth of five: repeated ones twice.
void FillMessage(google::protobuf::Message* message, int depth = 5);

// Changes up to 24 fields, each in a message that the choices find: to an edge, scaled, nudged, a
// text of a file, left out, an element more or less.
void MutateMessage(Choices& choices, google::protobuf::Message* message);

}  // namespace memreplay::fuzz

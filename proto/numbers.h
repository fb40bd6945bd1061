// Checks the numbers of messages that come from outside: reports as JSON, summaries and caches.
#pragma once

#include "absl/status/status.h"

namespace google::protobuf {
class Message;
}

namespace memreplay {

// Checks that each signed number of a message and of those in it is finite and within 2^56 (bytes,
// addresses, counts) in either direction, so that sums and differences of a few are defined. Error:
// InvalidArgument with the first field that is not, such as "devices.ooms". O(size of the message).
absl::Status CheckNumbers(const google::protobuf::Message& message);

}  // namespace memreplay

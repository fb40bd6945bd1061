// Reads a pickle as data: protocols 2 to 5, builtin containers and scalars only. It never executes
// anything; an opcode that could name code is rejected with its name and byte offset.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "trace/bytes/byte_source.h"
#include "trace/bytes/value.h"

namespace memreplay {

// Limits far above what real files need.
inline constexpr size_t kMaxPickleMarks = 4096;                    // open at once
inline constexpr uint64_t kMaxPickleString = uint64_t{256} << 20;  // bytes of one string

// The content of a pickle.
struct Pickle {
  Value root;
  int protocol = 0;
};

// The bytes that two threads best share at a time: fewer begin too often, more take memory.
inline constexpr size_t kPickleShare = size_t{8} << 20;

// Reads up to the STOP opcode and leaves what follows unread. Passes every dict to `reducer`. Time
// and memory are O(bytes of input), whatever lengths and memo slots the input claims. Errors
// (InvalidArgument) name the byte offset, what was expected and what was found. If `share` is not 0
// and the whole input is in memory, a second thread reads rows of similar dicts, for which it takes
// O(share) of memory; the result is the same.
absl::StatusOr<Pickle> ReadPickle(ByteSource& source, ValueHeap& heap, DictReducer& reducer,
                                  size_t share = 0);

}  // namespace memreplay

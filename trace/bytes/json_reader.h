// Reads one JSON text into a ValueHeap, element by element. A snapshot as JSON is ten times larger
// than its pickle, so this does not build a tree of it either.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "trace/bytes/byte_source.h"
#include "trace/bytes/value.h"

namespace memreplay {

// Limits far above what real files need.
inline constexpr size_t kMaxSnapshotJsonDepth = 1000;
inline constexpr size_t kMaxSnapshotJsonString = size_t{256} << 20;  // bytes as written

// Reads a JSON text. Numbers without '.' and exponent are integers, exact up to 64 bits; NaN,
// Infinity and -Infinity are read as Python writes them. Only white space may follow. O(bytes),
// without recursion. Errors (InvalidArgument) name the byte offset, what was expected and what was
// found.
absl::StatusOr<Value> ReadJson(ByteSource& source, ValueHeap& heap, DictReducer& reducer);

}  // namespace memreplay

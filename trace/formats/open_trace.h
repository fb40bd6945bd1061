// Opens a trace file of any known format. The bytes, never the name, determine the format. To add a
// format, write a reader with this signature and add a row to the table in open_trace.cc.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "trace/bytes/byte_source.h"
#include "trace/value/trace.h"

namespace memreplay {

// Reads a whole file (plain, gzip or zstd; decompressed size is bounded). Errors: NotFound,
// PermissionDenied, InvalidArgument (a directory, an unknown format, a malformed file), DataLoss
// (compressed data is damaged or truncated), ResourceExhausted (it unpacks to too much). The
// message names the file, the byte offset (or line), what was expected and what was found.
absl::StatusOr<Trace> OpenTrace(const std::string& path);
// Reads a source, which messages call `path`.
absl::StatusOr<Trace> OpenTrace(ByteSource& source, const std::string& path);
// Returns whether a regular file is text in none of the formats, such as a log.
bool IsTextOfNoFormat(const std::string& path);

}  // namespace memreplay

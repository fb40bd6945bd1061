// memreplay's binary format: delimited records of proto/trace.proto. It is compact, fast to read
// and, unlike the others, detects truncation.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trace/bytes/byte_sink.h"
#include "trace/bytes/byte_source.h"
#include "trace/value/trace.h"

namespace memreplay {

inline constexpr std::string_view kProtobufMagic = "\x8eMRTRACE";
inline constexpr uint32_t kProtobufVersion = 1;
// The maximum size of a record, and of a reader's memory in addition to the Trace.
inline constexpr size_t kMaxRecordBytes = size_t{8} << 20;

bool LooksLikeProtobufTrace(std::string_view head);

// Reads a file in one pass. O(bytes). Error: InvalidArgument, "byte B: expected X, found Y", where
// B is the start of the record.
absl::StatusOr<Trace> ReadProtobufTrace(ByteSource& source);

// Writes a trace that reads back as the same Trace. O(size), with memory for one record. Errors:
// FailedPrecondition for a trace that is not well formed or has a text over 8 MiB, and those of the
// sink.
absl::Status WriteProtobufTrace(const Trace& trace, ByteSink& sink);

}  // namespace memreplay

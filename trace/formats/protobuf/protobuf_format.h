// Our binary format: delimited records of proto/trace.proto. Compact, quick to
// read and, unlike the others, safe against being cut off unnoticed.
#ifndef MEMREPLAY_TRACE_FORMATS_PROTOBUF_PROTOBUF_FORMAT_H_
#define MEMREPLAY_TRACE_FORMATS_PROTOBUF_PROTOBUF_FORMAT_H_

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
// No record is longer; this is what a reader holds at once in addition to the Trace.
inline constexpr size_t kMaxRecordBytes = size_t{8} << 20;

bool LooksLikeProtobufTrace(std::string_view head);

// Errors: InvalidArgument, "byte B: expected X, found Y"; B is where the record
// begins. One pass, O(bytes).
absl::StatusOr<Trace> ReadProtobufTrace(ByteSource& source);

// Errors: FailedPrecondition for a trace that is not well formed or has a text
// over 8 MiB; the sink's. Reads back as the same Trace. O(size), memory of one
// record.
absl::Status WriteProtobufTrace(const Trace& trace, ByteSink& sink);

}  // namespace memreplay

#endif  // MEMREPLAY_TRACE_FORMATS_PROTOBUF_PROTOBUF_FORMAT_H_

// The first line of flat JSON lines (docs/formats.md). Used by flat_jsonl_reader.cc.
#ifndef MEMREPLAY_TRACE_FORMATS_FLAT_FLAT_HEADER_H_
#define MEMREPLAY_TRACE_FORMATS_FLAT_FLAT_HEADER_H_

#include "trace/formats/flat/json_record.h"
#include "trace/value/trace_builder.h"

namespace memreplay {

// Reads the header in `record` into the trace. `declared_devices`: how many devices
// the program says it uses, at least 1. False: the error is in `record`.
bool ReadFlatHeader(JsonRecord& record, TraceBuilder& builder, int* declared_devices);

}  // namespace memreplay

#endif  // MEMREPLAY_TRACE_FORMATS_FLAT_FLAT_HEADER_H_

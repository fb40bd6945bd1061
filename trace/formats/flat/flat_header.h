// The first line of flat JSON lines (docs/formats.md). Used by flat_jsonl_reader.cc.
#pragma once

#include "trace/formats/flat/json_record.h"
#include "trace/value/trace_builder.h"

namespace memreplay {

// Reads the header in `record` into the trace. `declared_devices` becomes the number of devices
// that the schedule declares, at least 1. Returns false after an error, which is then in `record`.
bool ReadFlatHeader(JsonRecord& record, TraceBuilder& builder, int* declared_devices);

}  // namespace memreplay

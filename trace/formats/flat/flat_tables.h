// The records of flat JSON lines that are not events: the header, tables of frames and stacks,
// final states, annotations, diagnostics (docs/formats.md). Used by flat_jsonl_reader.cc.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "trace/formats/flat/json_record.h"
#include "trace/value/tables.h"
#include "trace/value/trace_builder.h"

namespace memreplay {

// Reads these records. Functions that return bool return false after an error, which is then in
// `record`.
class FlatTables {
 public:
  FlatTables(JsonRecord& record, TraceBuilder& builder) : record_(record), builder_(builder) {}

  // Reads the header. `declared_devices` becomes the number of devices that the schedule declares,
  // at least 1.
  bool Header(int* declared_devices);
  // Reads a record of another kind.
  bool Read();

  // Reads the member "d", which is 0 if absent.
  bool Device(int* device);
  // Reads the member "st", if any: a stack that a record "st" defined.
  bool DefinedStack(uint32_t* stack);

 private:
  // Reads the member "i", the number of a frame or stack.
  bool Index(size_t expected);
  bool FrameRecord();
  bool StackRecord();
  bool DeviceRecord();
  bool SegmentRecord();
  bool BlockRecord();
  bool AnnotationRecord();
  bool NoteRecord();
  bool DiagnosticRecord();

  JsonRecord& record_;
  TraceBuilder& builder_;
  // Indexes in the tables by number in the file. Number 0 is none.
  std::vector<uint32_t> frames_ = {0};
  std::vector<uint32_t> stacks_ = {kNoStack};
  std::vector<uint32_t> scratch_;
  int segment_device_ = -1;  // device of the blocks' segment; < 0: none yet
};

}  // namespace memreplay

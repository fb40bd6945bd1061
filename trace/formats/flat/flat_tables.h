// The records of flat JSON lines that are no events: tables of frames and stacks,
// final states, annotations, diagnostics (docs/formats.md). Used by flat_jsonl_reader.cc.
#ifndef MEMREPLAY_TRACE_FORMATS_FLAT_FLAT_TABLES_H_
#define MEMREPLAY_TRACE_FORMATS_FLAT_FLAT_TABLES_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "trace/formats/flat/json_record.h"
#include "trace/value/tables.h"
#include "trace/value/trace_builder.h"

namespace memreplay {

// Functions that return bool return false after an error, which is then in `record`.
class FlatTables {
 public:
  FlatTables(JsonRecord& record, TraceBuilder& builder) : record_(record), builder_(builder) {}

  // Reads the record, whose "k" is `kind`; `known`: whether it is one of these.
  bool Read(std::string_view kind, bool* known);

  // The member "d", 0 if absent.
  bool Device(int* device);
  // A stack that a record "st" defined.
  bool DefinedStack(const JsonMember& member, uint32_t* stack);

 private:
  bool Missing(std::string_view key);
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
  std::string_view kind_;
  // Numbers in the file -> indexes in the tables. Number 0 is none.
  std::vector<uint32_t> frames_ = {0};
  std::vector<uint32_t> stacks_ = {kNoStack};
  std::vector<uint32_t> scratch_;
  int segment_device_ = -1;  // of the segment that blocks belong to; < 0: none yet
};

}  // namespace memreplay

#endif  // MEMREPLAY_TRACE_FORMATS_FLAT_FLAT_TABLES_H_

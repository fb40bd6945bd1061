// The records of the flat JSON lines format, shared by its reader and writer.
// The format is described in docs/formats.md.
#pragma once

#include <string_view>

#include "trace/value/event.h"

namespace memreplay {

inline constexpr std::string_view kFlatFormat = "memsched-flat";
inline constexpr int kFlatVersion = 1;
// The file name of the second frame of an allocation that has dt, sh or saved; the name of that
// frame is these members as JSON.
inline constexpr std::string_view kTensorFrame = "memsched:tensor";

// The mapping from the members of a record to the fields of an Event, one row for each record that
// is an event.
struct FlatRecord {
  std::string_view k;
  EventKind kind;
  MarkKind mark;            // for kMark
  std::string_view text;    // the member with the text, if any
  std::string_view handle;  // the member with the handle, if it is not "id"
  // Members that a schedule must have, one letter each: i handle, b size, s stream, p pool, t text,
  // n count.
  std::string_view required;
  bool has_label;  // t, n (and dt, sh, saved) name the allocation
};

inline constexpr FlatRecord kFlatRecords[] = {
    {"a", EventKind::kAlloc, {}, "", "id", "ib", true},
    {"f", EventKind::kFree, {}, "", "id", "i", true},
    {"u", EventKind::kRecordStream, {}, "", "id", "is", true},
    {"done", EventKind::kStreamDone, {}, "", "id", "s", false},
    {"c", EventKind::kEmptyCache, {}, "", "id", "", false},
    {"p", EventKind::kMark, MarkKind::kPhase, "n", "id", "t", false},
    {"m", EventKind::kMark, MarkKind::kLabel, "n", "id", "", false},
    {"t", EventKind::kMark, MarkKind::kRetag, "t", "id", "it", false},
    {"e", EventKind::kMark, MarkKind::kEventRecord, "", "ev", "is", false},
    {"w", EventKind::kMark, MarkKind::kStreamWait, "", "ev", "is", false},
    {"x", EventKind::kResetPeak, {}, "", "id", "", false},
    {"x", EventKind::kResetAccumulated, {}, "", "id", "", false},
    {"X", EventKind::kOutsideAlloc, {}, "n", "id", "b", false},
    {"Xf", EventKind::kOutsideFree, {}, "", "id", "", true},
    {"conf", EventKind::kSettings, {}, "v", "id", "t", false},
    {"frac", EventKind::kFraction, {}, "v", "id", "t", false},
    {"fail", EventKind::kFailNext, {}, "", "id", "n", false},
    {"cp", EventKind::kPoolCreate, {}, "", "id", "p", false},
    {"cx", EventKind::kPoolForget, {}, "", "id", "p", false},
    {"bp", EventKind::kPoolBegin, {}, "", "id", "p", false},
    {"ep", EventKind::kPoolEnd, {}, "", "id", "p", false},
    {"rp", EventKind::kPoolRelease, {}, "", "id", "p", false},
    {"y", EventKind::kStreamDone, {}, "", "id", "s", false},  // read only; written as "done"
};

}  // namespace memreplay

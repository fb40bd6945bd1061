// Validates a schedule program and compiles it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "trace/program/program_code.h"
#include "trace/program/program_text.h"

namespace memreplay::program {

// Overrides of the program's own header.
struct CompileOptions {
  std::map<std::string, int64_t> params;  // override the program's own
  uint64_t max_events = 0;                // 0: the program's own, or kDefaultMaxEvents
};

// Compiles a program. Error: InvalidArgument, "PLACE: expected X, found Y", where PLACE is the line
// and column, if known, and the path to the statement.
absl::StatusOr<ProgramCode> CompileProgram(const ProgramText& text, const CompileOptions& options);

}  // namespace memreplay::program

// Reads a schedule program, as text proto or JSON, and expands it into a Trace.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "trace/bytes/byte_source.h"
#include "trace/program/program_compiler.h"
#include "trace/value/trace.h"

namespace memreplay {

bool LooksLikeProgramText(std::string_view head);
bool LooksLikeProgramJson(std::string_view head);

// Read a program; Trace::format is "program_text" or "program_json". Error: InvalidArgument.
absl::StatusOr<Trace> ReadProgramText(ByteSource& source);
absl::StatusOr<Trace> ReadProgramJson(ByteSource& source);

namespace program {

// Compiles the program in `source`, in either format. The message does not name the file.
absl::StatusOr<ProgramCode> ReadProgramCode(ByteSource& source, const CompileOptions& options);

// The maximum number of events that are kept; a longer program is expanded again for each pass.
inline constexpr uint64_t kMaxKeptEvents = uint64_t{1} << 22;

// Returns all events of a program.
absl::StatusOr<Trace> ExpandProgram(ProgramCode code, uint64_t most_kept = kMaxKeptEvents);

// Do the same for the file at `path`; messages name it.
absl::StatusOr<ProgramCode> OpenProgramCode(const std::string& path, const CompileOptions& options);
absl::StatusOr<Trace> OpenProgram(const std::string& path, const CompileOptions& options);

}  // namespace program
}  // namespace memreplay

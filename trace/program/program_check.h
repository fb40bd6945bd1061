// What a schedule program requests as a whole, found by expanding it without
// keeping its events: memory is what is live.
#ifndef MEMREPLAY_TRACE_PROGRAM_PROGRAM_CHECK_H_
#define MEMREPLAY_TRACE_PROGRAM_PROGRAM_CHECK_H_

#include "absl/status/statusor.h"
#include "proto/schedule.pb.h"
#include "trace/program/program_code.h"

namespace memreplay::program {

// Errors: those of the program. O(events) time.
absl::StatusOr<proto::ProgramCheck> CheckProgram(const ProgramCode& code);

}  // namespace memreplay::program

#endif  // MEMREPLAY_TRACE_PROGRAM_PROGRAM_CHECK_H_

// Summarises the requests of a schedule program by expanding it without keeping its events. Memory
// is proportional to what is live.
#pragma once

#include "absl/status/statusor.h"
#include "proto/schedule.pb.h"
#include "trace/program/program_code.h"

namespace memreplay::program {

// Expands the program in O(events) time. Errors: those of the program.
absl::StatusOr<proto::ProgramCheck> CheckProgram(const ProgramCode& code);

}  // namespace memreplay::program

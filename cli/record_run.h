// A PyTorch program that is run and records, and what the replay says of its snapshots.
#ifndef MEMREPLAY_CLI_RECORD_RUN_H_
#define MEMREPLAY_CLI_RECORD_RUN_H_

#include "absl/status/statusor.h"
#include "proto/record.pb.h"
#include "record/run_program.h"

namespace memreplay {

// Runs it, replays each snapshot, and shows meanwhile how far it is; Ctrl-C goes to the program.
// Errors: as RunProgram(), and a snapshot that cannot be read.
absl::StatusOr<proto::RecordReport> Record(RecordOptions options);

}  // namespace memreplay

#endif  // MEMREPLAY_CLI_RECORD_RUN_H_

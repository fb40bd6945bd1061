// The flags of a run on an imagined card, which record, fit script and sweep script share.
#ifndef MEMREPLAY_CLI_RECORD_FLAGS_H_
#define MEMREPLAY_CLI_RECORD_FLAGS_H_

#include "absl/status/status.h"
#include "cli/flags.h"
#include "record/run_program.h"

namespace memreplay {

// All but --card and what says where output goes.
void AddRecordFlags(RecordOptions* run, FlagSet* flags);

// Error: flags that contradict each other, values out of range, no program.
absl::Status CheckRecordCall(const RecordOptions& run);

}  // namespace memreplay

#endif  // MEMREPLAY_CLI_RECORD_FLAGS_H_

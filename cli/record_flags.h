// The flags of a run on a simulated GPU, which record, fit script and sweep script share.
#ifndef MEMREPLAY_CLI_RECORD_FLAGS_H_
#define MEMREPLAY_CLI_RECORD_FLAGS_H_

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/flags.h"
#include "record/run_program.h"
#include "trace/value/units.h"

namespace memreplay {

// Reads a size, or the name of a GPU, which stands for its total memory.
absl::StatusOr<Bytes> ParseMemory(std::string_view text);

// Registers all flags except --card and those about output.
void AddRecordFlags(RecordOptions* run, FlagSet* flags);

// Errors: flags that contradict each other, values out of range, no script.
absl::Status CheckRecordCall(const RecordOptions& run);

}  // namespace memreplay

#endif  // MEMREPLAY_CLI_RECORD_FLAGS_H_

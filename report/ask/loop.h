// What takes longer than reading a file: steps, holders, streams, what may be missing.
#ifndef MEMREPLAY_REPORT_ASK_LOOP_H_
#define MEMREPLAY_REPORT_ASK_LOOP_H_

#include "absl/status/status.h"
#include "proto/report.pb.h"
#include "report/words/stack_names.h"
#include "sim/recording/replay_settings.h"
#include "trace/schedule/schedule.h"

namespace memreplay {

// Adds to what `report` tells of the file: the loop, and the control of its what-ifs.
// Errors: ReplayWhatIf()'s.
absl::Status AskLoop(const Schedule& schedule, const ReplaySettings& settings, StackNames& names,
                     proto::DeviceReport* report);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_ASK_LOOP_H_

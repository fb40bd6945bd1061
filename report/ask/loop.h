// What takes longer than reading a file: steps, holders, streams, what may be missing.
#ifndef MEMREPLAY_REPORT_ASK_LOOP_H_
#define MEMREPLAY_REPORT_ASK_LOOP_H_

#include "absl/status/statusor.h"
#include "proto/report.pb.h"
#include "sim/recording/replay_settings.h"
#include "trace/schedule/schedule.h"

namespace memreplay {

// Of "inspect --deep". Errors: ReplayWhatIf()'s.
absl::StatusOr<proto::LoopReport> AskLoop(const Schedule& schedule, const ReplaySettings& settings,
                                          const proto::RecordedPeaks& recorded);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_ASK_LOOP_H_

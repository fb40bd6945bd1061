// Finds the changes of the script that would need less memory, from a recording alone.
#ifndef MEMREPLAY_REPORT_ASK_ADVISE_RECORDING_H_
#define MEMREPLAY_REPORT_ASK_ADVISE_RECORDING_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/report.pb.h"
#include "sim/recording/replay_settings.h"
#include "sim/remedy/search.h"
#include "sim/run/progress.h"
#include "sim/study/study.h"

namespace memreplay {

// Edits the recording as each change would have it and replays it, at most kMaxReplays times. The
// goal is the capacity of `settings`, or that of the recorded GPU if memory ran out on it; `card`
// names it in the answer. Error: ReplayWhatIf()'s.
absl::StatusOr<proto::Advice> AdviceOf(const Study& study, const ReplaySettings& settings,
                                       const std::string& card, ProgressSink* progress = nullptr);

// Returns the report of the command advise for one device.
absl::StatusOr<proto::DeviceReport> AskAdvice(const Study& study, const std::string& card,
                                              ProgressSink* progress = nullptr);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_ASK_ADVISE_RECORDING_H_

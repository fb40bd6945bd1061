// Finds the changes of the script that would need less memory, from a recording alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "proto/report.pb.h"
#include "sim/observe/timeline.h"
#include "sim/recording/replay_settings.h"
#include "sim/remedy/scaling.h"
#include "sim/remedy/search.h"
#include "sim/run/progress.h"
#include "sim/study/study.h"

namespace memreplay {

// Recordings of one script with different values of an argument, and what is asked about it.
struct ScaledQuestion {
  Scaling scaling;
  std::string key;  // "--batch_size"
  // The value that the advice is for; 0: that of the scaling's base.
  int64_t value = 0;
  bool finds_largest =
      false;  // which value is the largest that fits, as it is and with each change
};

// What is asked about a recording in which memory ran out.
struct ServingQuestion {
  // Shown the run with each of Advice.serving_rows, in their order, which is made once more for it;
  // empty: none is made.
  std::function<void(const HistoryObserver&)> show;
  size_t timeline_buckets = 0;  // of these
};

// Edits the recording as each change would have it and replays it, at most kMaxReplays times, and
// at most 16 times more for each largest value. The goal is the capacity of `settings`, or that of
// the recorded GPU if memory ran out on it; `card` names it in the answer. `scaled` may be null;
// `study` is that of its base. With `serving` the answer has Advice.serving_rows. `report` must
// have what AddUnseen() found, and gets what only the passes show. Error: ReplayWhatIf()'s.
absl::StatusOr<proto::Advice> AdviceOf(const Study& study, const ReplaySettings& settings,
                                       const std::string& card, ProgressSink* progress,
                                       proto::DeviceReport* report,
                                       const ScaledQuestion* scaled = nullptr,
                                       const ServingQuestion* serving = nullptr);

// Returns the report of the command advise for one device. Error: AdviceOf()'s; InvalidArgument if
// the largest value is to be found and there is no goal.
absl::StatusOr<proto::DeviceReport> AskAdvice(const Study& study, const std::string& card,
                                              ProgressSink* progress = nullptr,
                                              const ScaledQuestion* scaled = nullptr);

}  // namespace memreplay

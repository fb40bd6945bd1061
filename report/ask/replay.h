// Reports what is in a file, and replays it under some settings.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/record.pb.h"
#include "proto/report.pb.h"
#include "report/device/categories.h"
#include "report/words/stack_names.h"
#include "sim/model/observer.h"
#include "sim/recording/replay_settings.h"
#include "sim/run/replay.h"
#include "sim/study/study.h"
#include "trace/value/memory_state.h"
#include "trace/value/trace.h"
#include "trace/value/units.h"

namespace memreplay {

// A report, and the segments that the run left.
struct ReplayAnswer {
  proto::DeviceReport report;
  MemoryState segments;  // at the end
};

// Replays as it happened, or under the study's settings on the recording's GPU, with the control of
// what-ifs and the peak with addresses in the other order. `watchers` may be null; a recording that
// is replayed as it happened is replayed once more for them. Error: ReplayWhatIf()'s.
absl::StatusOr<ReplayAnswer> AskReplay(const Study& study, StartPolicy start, Observer* watchers);

// Replays under the current settings, which sweep and fit compare with: a recording as it happened,
// compared with what it says, with the control of what-ifs; a written schedule on its device. The
// report has no segments, statistics or rules.
absl::StatusOr<proto::DeviceReport> AskCurrent(const Study& study);

// Returns peak reserved memory if work on other streams had been complete as soon as the allocator
// queried it; nullopt if it was in the recording, or if nothing differs. Error: ReplayWhatIf()'s.
absl::StatusOr<std::optional<Bytes>> PeakCompletedAtOnce(const Study& study,
                                                         const ReplaySettings& settings);

// Returns the replay of one device of a snapshot, whose stacks have `names`; `device` is from
// ReportReplay().
proto::RecordedReplay RecordedReplayOf(const Trace& trace, StackNames& names, size_t device_index,
                                       const proto::DeviceReport& device);

// Adds the replay of each device of a snapshot that `process` wrote. Error: ReplayWhatIf()'s.
absl::Status AddReplays(const OpenedFile& snapshot, proto::RecordedProcess* process);

// How much `memreplay inspect` reports.
struct InspectQuestion {
  bool deep = false;  // also AskLoop(), and what was held at the peak
  HeldOptions held;
};

// Reports what is in a file and, if requested, how its memory moved. Simulates nothing unless
// `deep`. Error: AskLoop()'s.
absl::StatusOr<proto::DeviceReport> AskInspect(const Study& study, const InspectQuestion& question);

}  // namespace memreplay

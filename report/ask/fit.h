// Finds the smallest device memory on which a file survives.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/report.pb.h"
#include "sim/recording/replay_settings.h"
#include "sim/run/progress.h"
#include "sim/study/study.h"
#include "sim/whatif/smallest_capacity.h"
#include "sim/whatif/sweep.h"
#include "sim/workload/lifetimes.h"
#include "sim/workload/packing.h"
#include "trace/schedule/schedule.h"

namespace memreplay {

// Settings, and the devices on which the file survives under them.
struct FitRow {
  Candidate candidate;
  bool is_current = false;
  std::string refused;
  SmallestCapacity found;
  SmallestCapacity other_order;  // with addresses in the other order
};

void AddFits(const std::vector<FitRow>& rows, const PeakLive& live, const Packing& packing,
             proto::DeviceReport* report);

// Answers for each of `confs`, or if there are none, for the file's own settings, the defaults and
// expandable segments. Error: ReplayWhatIf()'s; settings that the release rejects are a row that
// says so.
absl::StatusOr<proto::DeviceReport> AskFit(const Study& study,
                                           const std::vector<std::string>& confs, size_t threads,
                                           ProgressSink* progress = nullptr);

}  // namespace memreplay

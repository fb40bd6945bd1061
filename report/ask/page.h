// Collects everything that a page shows of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/report.pb.h"
#include "report/device/inventory.h"
#include "report/device/loop.h"
#include "report/page/render_html.h"
#include "sim/observe/timeline.h"
#include "sim/recording/replay_settings.h"
#include "sim/run/progress.h"
#include "sim/study/study.h"
#include "sim/workload/peak_holdings.h"
#include "trace/schedule/schedule.h"
#include "trace/value/memory_state.h"

namespace memreplay {

// How much a page may hold, so that a browser opens it at once.
struct PageLimits {
  size_t timeline_buckets = 2048;  // of the HistoryObserver
  size_t marks = 2000;             // of each kind
  size_t map_blocks = 20000;       // of each map
  size_t stacks = 50;              // of the table of holdings
};

// What a page shows of a schedule without a run.
struct Unsimulated {
  Loop loop;
  PeakHoldings holdings;
  std::vector<int64_t> births;  // BirthEvents()
  DeviceContents contents;
};
// Collects what a page shows without a run. O(requests).
Unsimulated FindUnsimulated(const Schedule& schedule);

// Fills `page` and `loop` of `report`, which describes the same run. `at_peak` is null if unknown.
// O(what is drawn).
void AddPage(const Schedule& schedule, const Meanings& meanings, const Unsimulated& known,
             const HistoryObserver& history, const MemoryState* at_peak, const MemoryState& at_end,
             const PageLimits& limits, proto::DeviceReport* report);

// Adds another run of the schedule, without the parts of `other` that the page does not show.
void AddOther(const HistoryObserver& history, const PageLimits& limits, proto::DeviceReport other,
              proto::DeviceReport* report);

// Which runs a page shows.
struct PageQuestion {
  std::vector<ReplaySettings> others;  // one more run each
  bool search = false;  // rank settings, and add a run under the best if they are better
  size_t threads = 1;
  ProgressSink* progress = nullptr;  // not null
};

// Reports the replay under the study's settings, why memory ran out if it did, and whatever else
// `question` requests; `data` gets the run itself. Errors: ReplayWhatIf()'s, AnalyseOom()'s.
absl::StatusOr<proto::DeviceReport> AskPage(const Study& study, const PageQuestion& question,
                                            RunData* data);

}  // namespace memreplay

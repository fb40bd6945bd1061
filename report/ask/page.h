// Everything that a page shows of a run.
#ifndef MEMREPLAY_REPORT_ASK_PAGE_H_
#define MEMREPLAY_REPORT_ASK_PAGE_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/report.pb.h"
#include "report/page/render_html.h"
#include "sim/recording/replay_settings.h"
#include "sim/run/progress.h"
#include "trace/schedule/schedule.h"

namespace memreplay {

// The replay under `settings`, why memory ran out where it did, and one more run for each of
// `others`; with `search` the ranking of AskSweep(), and a run under the best settings if they
// are better than those in force; `data` gets the run itself. Errors: ReplayWhatIf()'s,
// AnalyseOom()'s.
absl::StatusOr<proto::DeviceReport> AskPage(const Schedule& schedule,
                                            const ReplaySettings& settings,
                                            std::vector<ReplaySettings> others, bool search,
                                            size_t threads, RunData* data, ProgressSink* progress);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_ASK_PAGE_H_

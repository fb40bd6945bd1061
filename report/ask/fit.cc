#include "report/ask/fit.h"

#include <algorithm>
#include <utility>

#include "report/answer/sweep_report.h"
#include "report/ask/replay.h"
#include "sim/run/parallel.h"
#include "sim/whatif/control.h"
#include "sim/whatif/smallest_capacity.h"
#include "sim/whatif/sweep.h"
#include "sim/workload/lifetimes.h"
#include "sim/workload/packing.h"

namespace memreplay {
namespace {

// Those asked for, or the usual ones; without repetition of meaning.
std::vector<FitRow> RowsFor(const ReplaySettings& settings, std::vector<std::string> confs,
                            std::vector<ReplaySettings>* meanings) {
  std::vector<FitRow> rows;
  const bool given = !confs.empty();
  if (!given) {
    rows.push_back({{settings.config.conf, settings.fraction}, true, "", {}, {}});
    meanings->push_back(settings);
    confs = UsualConfs(*settings.torch.profile);
  }
  for (const std::string& conf : confs) {
    FitRow row{{conf, settings.fraction}, false, "", {}, {}};
    absl::StatusOr<ReplaySettings> meaning = SettingsFor(settings, row.candidate);
    if (!meaning.ok()) {
      row.refused = std::string(meaning.status().message());
      meaning = settings;
    } else if (!given &&
               std::any_of(meanings->begin(), meanings->end(), [&](const ReplaySettings& other) {
                 AllocatorConfig config = other.config;
                 config.conf = meaning->config.conf;
                 config.backend_loaded = meaning->config.backend_loaded;
                 return config == meaning->config;
               })) {
      continue;
    }
    rows.push_back(std::move(row));
    meanings->push_back(*std::move(meaning));
  }
  return rows;
}

}  // namespace

absl::StatusOr<proto::DeviceReport> AskFit(const Schedule& schedule, const ReplaySettings& settings,
                                           const std::vector<std::string>& confs, size_t threads,
                                           ProgressSink* progress) {
  absl::StatusOr<CurrentReplay> current = AskCurrent(schedule, settings);
  if (!current.ok()) return current.status();
  const std::vector<Lifetime> lifetimes = LifetimesOf(schedule);
  const PeakLive live = PeakLiveOf(lifetimes);
  const SweepContext context = {
      schedule, settings, &current->basis.start, StartPolicy::kFresh, threads, nullptr, progress};
  std::vector<ReplaySettings> meanings;
  std::vector<FitRow> rows = RowsFor(settings, confs, &meanings);
  // Each twice, with addresses in either order.
  ParallelFor(2 * rows.size(), context.threads, [&](size_t i) {
    FitRow& row = rows[i / 2];
    if (!row.refused.empty()) return;
    ReplaySettings meaning = meanings[i / 2];
    if (i % 2 == 0) {
      row.found = FindSmallestCapacity(context, meaning, live.requested);
    } else {
      meaning.order = OtherOrder(meaning.order);
      row.other_order_safe = FindSmallestCapacity(context, meaning, live.requested).safe_capacity;
    }
  });
  AddFits(rows, live, BestPacking(lifetimes), &current->report);
  return std::move(current->report);
}

}  // namespace memreplay

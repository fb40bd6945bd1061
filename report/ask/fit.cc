#include "report/ask/fit.h"

#include <algorithm>
#include <utility>

#include "report/ask/replay.h"
#include "report/ask/sweep.h"
#include "report/words/text.h"
#include "sim/run/parallel.h"
#include "sim/study/control.h"
#include "sim/whatif/capacity_walk.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// Returns a row for each of `confs`, or of the usual settings if there are none, and only one for
// settings that mean the same.
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

void AddFits(const std::vector<FitRow>& rows, const PeakLive& live, const Packing& packing,
             proto::DeviceReport* report) {
  report->set_mode(proto::Mode::fit);
  proto::Fits& fits = *report->mutable_fits();
  FillBounds(live, packing, fits.mutable_lower_bounds());
  const auto bytes = [](const std::optional<Bytes>& size) {
    return size.value_or(Bytes()).signed_value();
  };
  for (const FitRow& row : rows) {
    proto::Fits::Row& to = *fits.add_rows();
    to.set_conf(CleanText(row.candidate.conf));
    to.set_memory_fraction(row.candidate.fraction.value_or(0));
    to.set_is_current(row.is_current);
    to.set_refused(CleanText(row.refused));
    to.set_smallest_bytes(bytes(row.found.capacity));
    to.set_safe_bytes(bytes(row.found.safe_capacity));
    to.set_proven_until_bytes(bytes(row.found.proven_until));
    to.set_smallest_is_proven(row.found.is_smallest);
    to.set_other_order_safe_bytes(bytes(row.other_order.safe_capacity));
    to.set_without_retries_bytes(bytes(row.found.without_retries));
    to.set_unlimited_peak_reserved_bytes(row.found.unlimited_peak_reserved.signed_value());
    for (const CapacityProbe& probe : row.found.probes) {
      proto::Fits::Probe& out = *to.add_probes();
      out.set_capacity_bytes(probe.capacity.signed_value());
      out.set_same_until_bytes(bytes(probe.same_until));
      out.set_survives(probe.survives);
      out.set_ooms(static_cast<int64_t>(probe.ooms));
      out.set_alloc_retries(static_cast<int64_t>(probe.alloc_retries));
      out.set_peak_reserved_bytes(probe.peak_reserved.signed_value());
      out.set_device_calls(static_cast<int64_t>(probe.device_calls));
    }
  }
}

absl::StatusOr<proto::DeviceReport> AskFit(const Study& study,
                                           const std::vector<std::string>& confs, size_t threads,
                                           ProgressSink* progress) {
  absl::StatusOr<proto::DeviceReport> report = AskCurrent(study);
  if (!report.ok()) return report;
  const std::vector<Lifetime> lifetimes = LifetimesOf(study.schedule());
  const PeakLive live = PeakLiveOf(lifetimes);
  const SweepContext context = {study,   study.settings(), StartPolicy::kFresh,
                                threads, nullptr,          progress};
  const uint64_t requests = study.schedule().requests().size();
  const uint64_t max_sizes = MaxSizes(requests);
  std::vector<ReplaySettings> meanings;
  std::vector<FitRow> rows = RowsFor(study.settings(), confs, &meanings);
  // Each row is computed twice, with addresses in either order.
  ParallelFor(2 * rows.size(), context.threads, [&](size_t i) {
    FitRow& row = rows[i / 2];
    if (!row.refused.empty()) return;
    ReplaySettings meaning = meanings[i / 2];
    if (i % 2 == 0) {
      row.found = FindSmallestCapacity(context, meaning, live.requested, max_sizes);
    } else {
      meaning.order = OtherOrder(meaning.order);
      row.other_order = FindSmallestCapacity(context, meaning, live.requested, max_sizes);
    }
  });
  if (std::any_of(rows.begin(), rows.end(),
                  [](const FitRow& row) { return row.found.is_cut || row.other_order.is_cut; })) {
    report->add_notes(StrCat("for each of the settings and each order of addresses, at most ",
                             FormatCount(static_cast<int64_t>(max_sizes), "size"),
                             " were tried, because each replays ",
                             FormatCount(static_cast<int64_t>(requests), "request"),
                             ": smaller sizes than those below may work too, and not all sizes "
                             "above them are proven to work"));
  }
  AddFits(rows, live, BestPacking(lifetimes), &*report);
  return report;
}

}  // namespace memreplay

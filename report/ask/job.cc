#include "report/ask/job.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "report/words/answer.h"
#include "report/words/verdict.h"
#include "trace/value/bounded.h"
#include "trace/value/median.h"

namespace memreplay {
namespace {

constexpr double kOutlierScore = 3.5;  // above this, in either direction
constexpr size_t kBestOfEach = 6;

// Returns how far each figure is from the median, in standard deviations that a few outliers do not
// change: the median distance from the median, times 1.4826, but at least 1 % of the median. O(n).
std::vector<double> RobustScores(const std::vector<int64_t>& figures) {
  const int64_t median = Median(figures);
  std::vector<int64_t> distances;
  for (const int64_t figure : figures) distances.push_back(std::abs(figure - median));
  const double spread = std::max({1.4826 * static_cast<double>(Median(std::move(distances))),
                                  0.01 * static_cast<double>(median), 1.0});
  std::vector<double> scores;
  for (const int64_t figure : figures) {
    scores.push_back(static_cast<double>(figure - median) / spread);
  }
  return scores;
}

// Sets `score` and `is_outlier` of each message from its figure. Does nothing for fewer than three,
// because neither of two figures stands out.
template <typename Message>
void MarkOutliers(const std::vector<int64_t>& figures, const std::vector<Message*>& messages) {
  if (figures.size() < 3) return;
  const std::vector<double> scores = RobustScores(figures);
  for (size_t i = 0; i < scores.size(); ++i) {
    messages[i]->set_score(scores[i]);
    messages[i]->set_is_outlier(scores[i] > kOutlierScore || scores[i] < -kOutlierScore);
  }
}

// Calls `visit` with each row of a sweep that needs only settings, once for each settings.
template <typename Visit>
void ForEachConf(const proto::Sweep& sweep, Visit visit) {
  std::set<std::string_view> seen;
  const auto visit_one = [&](const proto::SweepRow& row) {
    const bool is_comparable =
        !row.needs_call() || row.memory_fraction() == sweep.current().memory_fraction();
    if (is_comparable && seen.insert(row.conf()).second) visit(row);
  };
  for (const proto::SweepRow& row : sweep.rows()) visit_one(row);
  if (sweep.searched()) visit_one(sweep.current());
}

}  // namespace

void JobFold::Add(const proto::Report& report) {
  job_.set_command(report.command());
  job_.set_files(job_.files() + 1);
  status_ = std::max(status_, !report.error().empty() ? kExitUnusable
                              : HasFaults(report)     ? kExitBad
                                                      : kExitAnswered);
  if (!report.error().empty()) {
    job_.set_failed(job_.failed() + 1);
    proto::Job::Row& row = *job_.add_rows();
    row.set_file(report.file());
    row.set_device(-1);
    row.set_error(report.error());
  }
  for (const proto::DeviceReport& device : report.devices()) {
    proto::Job::Row& row = *job_.add_rows();
    row.set_file(report.file());
    row.set_device(device.device());
    row.set_events(device.events());
    row.set_ooms(device.ooms());
    if (device.has_oom()) row.set_verdict(device.oom().verdict());
    if (device.has_oom() && !device.oom().recorded() &&
        device.oom().verdict() != proto::Verdict::none) {
      row.set_reserved_bytes(device.oom().use().reserved_bytes());
      row.set_requested_bytes(device.oom().use().live_requested_bytes());
    } else {
      row.set_reserved_bytes(device.peak_reserved_bytes());
      row.set_requested_bytes(device.peak_requested_bytes());
    }
  }
}

proto::Job JobFold::Finish() const {
  proto::Job job = job_;
  job.set_worst_row(-1);
  std::vector<int32_t> rows;  // with an answer
  std::vector<int64_t> figures;
  std::vector<proto::Job::Row*> messages;
  for (int32_t i = 0; i < job.rows_size(); ++i) {
    if (!job.rows(i).error().empty()) continue;
    rows.push_back(i);
    figures.push_back(ComparedBytes(job.rows(i)));
    messages.push_back(job.mutable_rows(i));
  }
  if (rows.empty()) return job;
  // Out of memory is worse than any peak.
  job.set_worst_row(*absl::c_max_element(rows, [&](int32_t a, int32_t b) {
    const bool a_ran_out = job.rows(a).ooms() > 0;
    const bool b_ran_out = job.rows(b).ooms() > 0;
    return a_ran_out != b_ran_out ? b_ran_out
                                  : ComparedBytes(job.rows(a)) < ComparedBytes(job.rows(b));
  }));
  const auto [low, high] = absl::c_minmax_element(figures);
  job.set_spread_bytes(*high - *low);
  MarkOutliers(figures, messages);
  return job;
}

std::string RenderJobPage(std::vector<PageInput> ranks) {
  std::erase_if(ranks, [](const PageInput& rank) { return rank.report.devices().empty(); });
  if (ranks.empty()) return "";
  JobFold fold;
  for (const PageInput& rank : ranks) fold.Add(rank.report);
  const proto::Job job = fold.Finish();
  return RenderHtml(ranks, &job);
}

std::vector<std::string> CommonCandidates(absl::Span<const proto::Report> reports) {
  std::set<std::string> confs = {""};
  for (const proto::Report& report : reports) {
    for (const proto::DeviceReport& device : report.devices()) {
      if (!device.sweep().current().needs_call()) confs.insert(device.sweep().current().conf());
      size_t taken = 0;
      for (const proto::SweepRow& row : device.sweep().rows()) {
        if (!row.refused().empty() || row.needs_call()) continue;
        confs.insert(row.conf());
        if (++taken == kBestOfEach) break;
      }
    }
  }
  return {confs.begin(), confs.end()};
}

std::vector<std::string> Untried(const proto::Report& report, absl::Span<const std::string> confs) {
  std::map<std::string_view, int> devices;  // that were swept under it
  int swept = 0;
  for (const proto::DeviceReport& device : report.devices()) {
    if (device.sweep().rows().empty()) continue;  // no events: nothing can be tried
    ++swept;
    ForEachConf(device.sweep(), [&](const proto::SweepRow& row) { ++devices[row.conf()]; });
  }
  std::vector<std::string> untried;
  for (const std::string& conf : confs) {
    if (devices[conf] < swept) untried.push_back(conf);
  }
  return untried;
}

void AddRows(const proto::Report& more, proto::Report* report) {
  if (!more.error().empty()) report->set_error(more.error());
  for (proto::DeviceReport& device : *report->mutable_devices()) {
    for (const proto::DeviceReport& other : more.devices()) {
      if (other.device() != device.device()) continue;
      device.mutable_sweep()->mutable_rows()->MergeFrom(other.sweep().rows());
    }
  }
}

proto::Together CompareTogether(absl::Span<const proto::Report> reports) {
  proto::Together answer;
  // Where nothing can be tried, no settings are known to change anything.
  std::set<std::string> confs;
  for (const proto::Report& report : reports) {
    for (const proto::DeviceReport& device : report.devices()) {
      ForEachConf(device.sweep(), [&](const proto::SweepRow& row) { confs.insert(row.conf()); });
    }
  }
  std::map<std::string, proto::Together::Row> rows;
  for (const proto::Report& report : reports) {
    answer.set_files(answer.files() + 1);
    if (!report.error().empty()) {
      answer.set_failed(answer.failed() + 1);
      continue;
    }
    for (const proto::DeviceReport& swept : report.devices()) {
      const proto::Sweep& own = swept.sweep();
      if (answer.variable().empty()) answer.set_variable(own.variable());
      proto::Together::Device& device = *answer.add_devices();
      device.set_file(report.file());
      device.set_device(swept.device());
      device.set_conf(own.current().conf());
      device.set_ooms(own.current().ooms());
      device.set_peak_reserved_bytes(own.current().peak_reserved_bytes());
      const proto::SweepRow& best = own.rows().empty() ? own.current() : own.rows(0);
      device.set_own_best_conf(best.conf());
      device.set_own_best_peak_reserved_bytes(best.peak_reserved_bytes());
      const auto add = [&](const std::string& conf, const proto::SweepRow& tried) {
        if (!tried.refused().empty()) return;
        proto::Together::Row& row = rows[conf];
        row.set_ooms(BoundedSum(row.ooms(), tried.ooms()));
        if (row.device_peak_bytes().empty() ||
            tried.peak_reserved_bytes() > row.peak_reserved_bytes()) {
          row.set_peak_reserved_bytes(tried.peak_reserved_bytes());
          row.set_worst_device(answer.devices_size() - 1);
        }
        row.set_sum_peak_reserved_bytes(
            BoundedSum(row.sum_peak_reserved_bytes(), tried.peak_reserved_bytes()));
        row.add_device_peak_bytes(tried.peak_reserved_bytes());
      };
      if (own.rows().empty()) {
        for (const std::string& conf : confs) add(conf, own.current());
      } else {
        ForEachConf(own, [&](const proto::SweepRow& tried) { add(tried.conf(), tried); });
      }
    }
  }
  std::vector<int64_t> peaks;
  std::vector<proto::Together::Device*> devices;
  for (proto::Together::Device& device : *answer.mutable_devices()) {
    peaks.push_back(device.peak_reserved_bytes());
    devices.push_back(&device);
  }
  MarkOutliers(peaks, devices);
  for (auto& [conf, row] : rows) {
    if (row.device_peak_bytes_size() != answer.devices_size()) continue;  // some release rejects it
    row.set_conf(conf);
    *answer.add_rows() = std::move(row);
  }
  absl::c_sort(*answer.mutable_rows(), [](const proto::Together::Row& a,
                                          const proto::Together::Row& b) {
    const auto key = [](const proto::Together::Row& row) {
      return std::make_tuple(row.ooms(), row.peak_reserved_bytes(), row.sum_peak_reserved_bytes(),
                             row.conf().size(), std::string_view(row.conf()));
    };
    return key(a) < key(b);
  });
  return answer;
}

}  // namespace memreplay

#include "report/ask/job.h"

#include <algorithm>
#include <vector>

#include "report/ask/outliers.h"
#include "report/words/answer.h"

namespace memreplay {
namespace {

// Returns the positions of the rows with an answer; the others belong to files without one.
std::vector<int32_t> Answered(const proto::Job& job) {
  std::vector<int32_t> rows;
  for (int32_t i = 0; i < job.rows_size(); ++i) {
    if (job.rows(i).error().empty()) rows.push_back(i);
  }
  return rows;
}

void FindOutliers(const std::vector<int32_t>& rows, proto::Job* job) {
  std::vector<int64_t> figures;
  std::vector<proto::Job::Row*> messages;
  for (const int32_t row : rows) {
    figures.push_back(ComparedBytes(job->rows(row)));
    messages.push_back(job->mutable_rows(row));
  }
  MarkOutliers(figures, messages);
}

}  // namespace

void AddToJob(const proto::Report& report, proto::Job* job) {
  job->set_command(report.command());
  job->set_files(job->files() + 1);
  if (!report.error().empty()) {
    job->set_failed(job->failed() + 1);
    proto::Job::Row& row = *job->add_rows();
    row.set_file(report.file());
    row.set_device(-1);
    row.set_error(report.error());
  }
  for (const proto::DeviceReport& device : report.devices()) {
    proto::Job::Row& row = *job->add_rows();
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

void FinishJob(proto::Job* job) {
  job->set_worst_row(-1);
  const std::vector<int32_t> rows = Answered(*job);
  if (rows.empty()) return;
  const auto figure = [&](int32_t row) { return ComparedBytes(job->rows(row)); };
  // Out of memory is worse than any peak.
  const auto worst = std::max_element(rows.begin(), rows.end(), [&](int32_t a, int32_t b) {
    const bool a_ran_out = job->rows(a).ooms() > 0;
    const bool b_ran_out = job->rows(b).ooms() > 0;
    return a_ran_out != b_ran_out ? b_ran_out : figure(a) < figure(b);
  });
  job->set_worst_row(*worst);
  const auto [low, high] = std::minmax_element(
      rows.begin(), rows.end(), [&](int32_t a, int32_t b) { return figure(a) < figure(b); });
  job->set_spread_bytes(figure(*high) - figure(*low));
  FindOutliers(rows, job);
}

}  // namespace memreplay

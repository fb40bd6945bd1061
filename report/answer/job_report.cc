#include "report/answer/job_report.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_format.h"
#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr int kLeastRows = 3;
constexpr int64_t kFarFactor = 4;

int64_t Median(std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[(values.size() - 1) / 2];
}

// What rows are compared by: programs that are not run have nothing reserved.
int64_t Figure(const proto::Job::Row& row) {
  return row.reserved_bytes() > 0 ? row.reserved_bytes() : row.requested_bytes();
}

void FindOdd(proto::Job* job) {
  if (job->rows_size() < kLeastRows) return;
  std::vector<int64_t> values;
  for (const proto::Job::Row& row : job->rows()) values.push_back(Figure(row));
  const int64_t median = Median(values);
  std::vector<int64_t> distances;
  for (const int64_t value : values) distances.push_back(std::abs(value - median));
  const auto farthest = std::max_element(distances.begin(), distances.end());
  const int64_t usual = Median(distances);
  if (*farthest * 100 > median && *farthest > kFarFactor * usual) {
    job->set_odd_row(static_cast<int32_t>(farthest - distances.begin()));
  }
}

std::string Name(const proto::Job& job, int row) {
  return StrCat(job.rows(row).file(), ", device ", job.rows(row).device());
}

}  // namespace

void AddToJob(const proto::Report& report, proto::Job* job) {
  job->set_command(report.command());
  job->set_files(job->files() + 1);
  if (!report.error().empty()) job->set_failed(job->failed() + 1);
  for (const proto::DeviceReport& device : report.devices()) {
    proto::Job::Row& row = *job->add_rows();
    row.set_file(report.file());
    row.set_device(device.device());
    row.set_events(device.events());
    row.set_ooms(device.ooms());
    if (device.has_oom()) row.set_verdict(device.oom().verdict());
    const bool inspected = device.mode() == proto::Mode::inspect;
    if (device.has_oom()) {
      row.set_reserved_bytes(device.oom().use().reserved_bytes());
      row.set_requested_bytes(device.oom().use().live_requested_bytes());
    } else {
      row.set_reserved_bytes(inspected ? device.recorded().peak_reserved_bytes()
                                       : device.peak_reserved_bytes());
      row.set_requested_bytes(inspected ? device.recorded().peak_requested_bytes()
                                        : device.peak_requested_bytes());
    }
  }
}

void FinishJob(proto::Job* job) {
  job->set_worst_row(-1);
  job->set_odd_row(-1);
  if (job->rows().empty()) return;
  // Out of memory is worse than any peak.
  const auto worse = [](const proto::Job::Row& a, const proto::Job::Row& b) {
    if ((a.ooms() > 0) != (b.ooms() > 0)) return b.ooms() > 0;
    return Figure(a) < Figure(b);
  };
  const auto worst = std::max_element(job->rows().begin(), job->rows().end(), worse);
  job->set_worst_row(static_cast<int32_t>(worst - job->rows().begin()));
  const auto by_bytes = [](const proto::Job::Row& a, const proto::Job::Row& b) {
    return Figure(a) < Figure(b);
  };
  const auto [low, high] = std::minmax_element(job->rows().begin(), job->rows().end(), by_bytes);
  job->set_spread_bytes(Figure(*high) - Figure(*low));
  FindOdd(job);
}

std::string RenderJobText(const proto::Job& job) {
  if (job.rows_size() < 2) return "";
  std::string out =
      StrCat("job: ", FormatCount(job.files(), "file"),
             job.failed() > 0 ? StrCat(", ", job.failed(), " without an answer") : "", "; worst ",
             Name(job, job.worst_row()), "; spread ", FormatSize(job.spread_bytes()), "; ",
             job.odd_row() < 0 ? std::string("none stands out")
                               : StrCat("odd one out ", Name(job, job.odd_row())),
             ".\n");
  const bool is_oom = job.command() == "oom";
  absl::StrAppendFormat(&out, "  %10s  %10s  %10s  %5s  %s\n", is_oom ? "reserved" : "peak res.",
                        is_oom ? "live" : "peak req.", "events", "ooms", "file");
  for (int i = 0; i < job.rows_size(); ++i) {
    const proto::Job::Row& row = job.rows(i);
    absl::StrAppendFormat(
        &out, "  %10s  %10s  %10s  %5s  %s%s%s%s\n", FormatSize(row.reserved_bytes()),
        FormatSize(row.requested_bytes()), FormatCount(row.events()), FormatCount(row.ooms()),
        Name(job, i),
        row.verdict() == proto::Verdict::none ? "" : ": " + proto::Verdict_Name(row.verdict()),
        i == job.worst_row() ? "  <- worst" : "", i == job.odd_row() ? "  <- odd one out" : "");
  }
  return out;
}

}  // namespace memreplay

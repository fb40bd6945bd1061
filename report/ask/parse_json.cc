#include "report/ask/parse_json.h"

#include <map>
#include <vector>

#include "proto/gpu_report.pb.h"
#include "proto/numbers.h"
#include "report/words/render_json.h"
#include "report/words/version.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr size_t kLookedAt = 4096;

// One cost of the model: the driver calls that it consists of, each by size.
struct Sum {
  std::vector<std::string> calls;
  CostBySize* cost;
};

}  // namespace

bool LooksLikeReport(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && text[begin] == '{' &&
         text.substr(0, kLookedAt).find("\"schema_version\"") != std::string_view::npos;
}

absl::StatusOr<proto::Report> ParseReport(std::string_view json) {
  proto::Report report;
  RETURN_IF_ERROR(ParseJson(json, "one report as JSON", &report));
  if (report.schema_version() != kReportSchemaVersion) {
    return InvalidArgument("a report of schema_version ", report.schema_version(),
                           "; this memreplay reads ", kReportSchemaVersion);
  }
  RETURN_IF_ERROR(CheckNumbers(report));
  return report;
}

absl::StatusOr<DriverCosts> ParseDriverCosts(std::string_view json) {
  proto::GpuCosts table;
  RETURN_IF_ERROR(
      ParseJson(json, "a table of costs as written by memreplay gpu --costs-out", &table));
  RETURN_IF_ERROR(CheckNumbers(table));
  // Refused calls share a row with the granted ones; a row of only refused calls does not show what
  // a granted one costs.
  std::map<std::string, std::map<int64_t, int64_t>> medians;  // call, size -> nanoseconds
  for (const proto::GpuTime& time : table.times()) {
    if (time.count() > time.refused() && time.size() > 0) {
      medians[time.call()][time.size()] = time.median_ns();
    }
  }
  DriverCosts result;
  const Sum sums[] = {{{"cuMemAlloc"}, &result.costs.segment_alloc},
                      {{"cuMemFree"}, &result.costs.segment_free},
                      {{"cuMemCreate", "cuMemMap", "cuMemSetAccess"}, &result.costs.map},
                      {{"cuMemUnmap", "cuMemRelease"}, &result.costs.unmap}};
  for (const Sum& sum : sums) {
    for (const auto& [size, median] : medians[sum.calls.front()]) {
      int64_t total = 0;
      bool complete = true;
      for (const std::string& call : sum.calls) {
        const auto other = medians[call].find(size);
        complete = complete && other != medians[call].end();
        if (complete) total += other->second;
      }
      if (complete) sum.cost->Set(Bytes(static_cast<uint64_t>(size)), static_cast<double>(total));
    }
    if (sum.cost->empty()) {
      return InvalidArgument("the table has no times of ", sum.calls.front(),
                             "; memreplay gpu --costs-out without a FILE measures all calls");
    }
  }
  result.card_text = table.card();
  if (!table.driver().empty()) StrAppend(&result.card_text, ", driver ", table.driver());
  if (!table.date().empty()) StrAppend(&result.card_text, ", ", table.date());
  return result;
}

}  // namespace memreplay

// Renders a Report as one HTML file that needs nothing else and fetches nothing: figures and tables
// are markup, and a script draws timelines and block maps from the report's JSON, which the page
// contains.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "proto/report.pb.h"

namespace memreplay {

// Every page contains this near its beginning.
inline constexpr char kPageMark[] = " - memreplay</title>";

// A run with all its events, for the charts of a device (report/run/run_data.h).
struct RunData {
  std::string head;     // JSON: how to read the columns
  std::string columns;  // base64
};

// The input of the command report. Equal reports give equal bytes.
struct PageInput {
  proto::Report report;
  std::vector<RunData> runs;  // of each device in order, or empty for a page without charts
};

// Renders a page. If `job` is not null, the inputs are ranks of one job, and the page begins with
// it.
std::string RenderHtml(absl::Span<const PageInput> inputs, const proto::Job* job = nullptr);
inline std::string RenderHtml(const proto::Report& report, const std::vector<RunData>& runs = {}) {
  const PageInput input{report, runs};
  return RenderHtml(absl::MakeConstSpan(&input, 1));
}

// Makes JSON fit for a <script> element: without '<', '>', '&' and the line separators that
// JavaScript does not allow.
std::string EscapeJsonForScript(std::string_view json);

}  // namespace memreplay

// Compares two files or two reports.
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "proto/report.pb.h"
#include "report/device/categories.h"
#include "trace/value/trace.h"

namespace memreplay {

// One side: a report, and the trace if it was made from one (otherwise its stacks and steps are
// unknown).
struct DiffSide {
  proto::Report report;
  std::shared_ptr<const Trace> trace;
};

// The number of stacks that a difference lists.
inline constexpr size_t kDiffStacks = 50;

// Returns the side for a trace; `path` is what the report calls it. Error: ChooseProfile()'s.
absl::StatusOr<DiffSide> SideOf(std::shared_ptr<const Trace> trace, std::string_view path);

// Compares two sides. Devices are matched by number. Each stack is named by all its frames, so that
// it is found in both; bytes are those requested and live at the side's peak. Stacks that changed
// most come first.
proto::Diff DiffReports(const DiffSide& a, const DiffSide& b, const HeldOptions& options);

}  // namespace memreplay

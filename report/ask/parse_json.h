// Parses what memreplay writes as JSON: reports, and the costs of driver calls.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "proto/report.pb.h"
#include "sim/device/simulated_device.h"

namespace memreplay {

// Returns whether the first bytes are those of a report in JSON.
bool LooksLikeReport(std::string_view text);
// Parses a report and ignores fields that this version does not know. Error: InvalidArgument.
absl::StatusOr<proto::Report> ParseReport(std::string_view json);

// The costs in the table of `memreplay gpu --costs-out`, and where they were measured.
struct DriverCosts {
  CallCosts costs;        // medians
  std::string card_text;  // "NVIDIA H100 PCIe, driver 13.0, 2026-11-20"
};

// Parses a table and ignores fields that this version does not know. Error: InvalidArgument if it
// is not such a table, or lacks the times of a call (named) that a sweep counts.
absl::StatusOr<DriverCosts> ParseDriverCosts(std::string_view json);

}  // namespace memreplay

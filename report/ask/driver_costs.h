// Reads the table of driver call costs that `memreplay gpu --costs-out` writes.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "sim/device/call_costs.h"

namespace memreplay {

// The costs in the table, and where they were measured.
struct DriverCosts {
  CallCosts costs;        // medians
  std::string card_text;  // "NVIDIA H100 PCIe, driver 13.0, 2026-11-20"
};

// Parses a table and ignores fields that this version does not know. Error: InvalidArgument if it
// is not such a table, or lacks the times of a call (named) that a sweep counts.
absl::StatusOr<DriverCosts> ParseDriverCosts(std::string_view json);

}  // namespace memreplay

// The table of what driver calls cost, which `memreplay gpu --costs-out` writes.
#ifndef MEMREPLAY_REPORT_ASK_DRIVER_COSTS_H_
#define MEMREPLAY_REPORT_ASK_DRIVER_COSTS_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "sim/device/call_costs.h"

namespace memreplay {

// What the table says, and where it was measured.
struct DriverCosts {
  CallCosts costs;        // medians
  std::string card_text;  // "NVIDIA H100 PCIe, driver 13.0, 2026-11-20"
};

// Fields that this version does not know are ignored. Error: InvalidArgument: not
// such a table, or one without the times of one of the calls (named) that a sweep
// counts.
absl::StatusOr<DriverCosts> ParseDriverCosts(std::string_view json);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_ASK_DRIVER_COSTS_H_

// Reports what is in a file and, if requested, how its memory moved.
#pragma once

#include "absl/status/statusor.h"
#include "proto/report.pb.h"
#include "report/device/held.h"
#include "sim/study/study.h"

namespace memreplay {

// How much `memreplay inspect` reports.
struct InspectQuestion {
  bool deep = false;  // also AskLoop(), and what was held at the peak
  HeldOptions held;
};

// Reports the contents. Simulates nothing unless `deep`. Error: AskLoop()'s.
absl::StatusOr<proto::DeviceReport> AskInspect(const Study& study, const InspectQuestion& question);

}  // namespace memreplay

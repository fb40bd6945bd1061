// The largest batch (or sequence, or number of layers) that fits -> Report.
#ifndef MEMREPLAY_REPORT_ANSWER_LARGEST_FIT_REPORT_H_
#define MEMREPLAY_REPORT_ANSWER_LARGEST_FIT_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proto/report.pb.h"
#include "sim/observe/phase_usage.h"
#include "sim/whatif/largest_fit.h"
#include "trace/value/units.h"

namespace memreplay {

// One value tried under one setting.
struct FitTrial {
  int64_t value = 0;
  Bytes peak_allocated;
  Bytes peak_reserved;
  std::string peak_phase;
  std::optional<PhaseOom> oom;
  bool is_hopeless = false;  // more is live at once than the device has
};

// All that was tried under one setting.
struct FitTrials {
  std::string conf;
  std::string refused;  // why the release does not take the settings; else empty
  LargestFit found;
  std::vector<FitTrial> trials;  // ascending
};

struct LargestFitContext {
  std::string model;
  std::string key;    // "batch_size"
  std::string torch;  // release
  Bytes capacity;     // what the allocator can get
  Bytes cuda_context;
};

proto::Report LargestFitReport(const LargestFitContext& context,
                               const std::vector<FitTrials>& settings);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_ANSWER_LARGEST_FIT_REPORT_H_

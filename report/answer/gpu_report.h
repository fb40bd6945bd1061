// A schedule predicted and measured -> proto::GpuRun.
#ifndef MEMREPLAY_REPORT_ANSWER_GPU_REPORT_H_
#define MEMREPLAY_REPORT_ANSWER_GPU_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "proto/report.pb.h"
#include "sim/confirm/confirmation.h"
#include "sim/confirm/device_run.h"

namespace memreplay {

// What the run on the card was, besides what it did.
struct GpuRunContext {
  proto::GpuCard card;
  proto::GpuRun::Pace pace = proto::GpuRun::none;
  std::optional<proto::GpuVerification> verification;
  std::vector<std::string> verify_faults;  // sentences
  // Per repetition, in order, as many as were measured.
  std::vector<proto::GpuRepetition> repetitions;  // times; the rest is filled in
  std::vector<proto::GpuTime> times;              // of all repetitions
};

// `measured` holds at least one run.
proto::DeviceReport ReportGpu(const RunPlan& plan, const proto::RecordedPeaks& recorded,
                              const DeviceRun& predicted, const std::vector<MeasuredRun>& measured,
                              GpuRunContext context);

// "needs 20.1 GiB at event 12 and the device has 11.9 GiB free".
std::string ShortageSentence(const RunPlan& plan, const Shortage& shortage);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_ANSWER_GPU_REPORT_H_

// A file replayed on a real GPU and compared with the simulation: predicted and measured.
#ifndef MEMREPLAY_REPORT_ASK_GPU_H_
#define MEMREPLAY_REPORT_ASK_GPU_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/report.pb.h"
#include "report/ask/gpu_card.h"
#include "sim/confirm/confirmation.h"
#include "sim/confirm/device_run.h"
#include "sim/model/observer.h"
#include "sim/recording/replay_settings.h"
#include "sim/run/progress.h"
#include "sim/run/replay.h"
#include "sim/study/study.h"
#include "sim/study/what_if.h"
#include "trace/schedule/schedule.h"

namespace memreplay {

// Under which circumstances the run on the GPU was made.
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

// Keeps the pace of a run on a card, and may end it.
class Pacer : public Intervention, public Observer {
 public:
  virtual int64_t taken_ns() const = 0;
  // What ended the run, such as "SIGINT"; "": nothing did.
  virtual std::string stopped_by() const = 0;
};

// How a file is to be replayed on a GPU.
struct GpuQuestion {
  std::optional<RunBackend> backend;  // absent: as the settings say
  bool by_ballast = false;
  bool at_recorded_pace = false;
  bool verify = false;
  StartPolicy start = StartPolicy::kRecorded;
  int64_t repetitions = 1;
  // `times`: when each request is due, in microseconds; empty: as fast as it goes.
  std::function<std::unique_ptr<Pacer>(const GpuSession& session,
                                       const std::vector<int64_t>& times)>
      make_pacer;
};

// Asks the question of one file after another, and keeps what the driver's calls took in all of
// them.
class GpuAsker {
 public:
  // Both must outlive this.
  GpuAsker(GpuCard& card, const GpuQuestion& question) : card_(card), question_(question) {}
  GpuAsker(const GpuAsker&) = delete;
  GpuAsker& operator=(const GpuAsker&) = delete;

  // Predicts, refuses what the card cannot hold (ResourceExhausted, nothing allocated), runs, and
  // compares. `file` is named in errors. Other errors: a pace that was not recorded, the
  // driver's, Cancelled.
  absl::StatusOr<proto::DeviceReport> Ask(const std::string& file, const Study& study,
                                          ProgressSink* progress);

  // Of calls made for nothing but their times.
  absl::Status MeasureCosts();
  // Of everything measured so far; without a date.
  proto::GpuCosts Costs();

 private:
  // In the order in which kinds of calls were first seen.
  struct Times {
    std::vector<proto::GpuTime> rows;
    std::map<std::pair<std::string, int64_t>, size_t> row;  // by call and size
  };

  static void Merge(const std::vector<proto::GpuTime>& from, Times* to);
  absl::StatusOr<DeviceRun> Measure(const RunPlan& plan, const std::vector<int64_t>& due,
                                    GpuRunContext* context, Times* all_taken);

  GpuCard& card_;
  const GpuQuestion& question_;
  Times times_;
};

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_ASK_GPU_H_

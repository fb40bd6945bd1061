// Replays a file on a real GPU and compares it with the simulation: predicted and measured.
#pragma once

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
#include "sim/confirm/device_run.h"
#include "sim/model/device.h"
#include "sim/model/observer.h"
#include "sim/recording/replay_settings.h"
#include "sim/run/progress.h"
#include "sim/run/replay.h"
#include "sim/study/study.h"
#include "sim/study/what_if.h"
#include "trace/schedule/schedule.h"
#include "trace/value/units.h"

namespace memreplay {

// --- Interfaces of a GPU for the replay on one. ---

// How a session on a GPU behaves.
struct GpuSessionOptions {
  std::optional<Bytes> capacity;
  bool by_ballast = false;  // take the rest of the memory, so that the driver refuses
  bool explicit_completion = false;
  bool verify = false;  // fill and check every block
  bool async = false;   // the driver's pool is the allocator
};

// One run's share of the GPU. The destructor releases everything.
class GpuSession {
 public:
  virtual ~GpuSession() = default;

  virtual Device& device() = 0;
  // Returns what RunOnDevice() needs to know about a real GPU, including the allocator of the
  // driver's pool, which it moves out.
  virtual RunWatch Watch() = 0;
  virtual Bytes ballast() const = 0;
  // Returns the driver's first error other than a refusal.
  virtual absl::Status status() const = 0;
  // Adds what verification found; adds nothing if it was not requested.
  virtual void AddVerification(std::optional<proto::GpuVerification>* counts,
                               std::vector<std::string>* faults) const = 0;
  // Releases everything. Returns the first error of doing so.
  virtual absl::Status Close() = 0;
};

// A GPU of this machine, for sessions that replay on it. The binary has one only if it was built
// with CUDA.
class GpuCard {
 public:
  virtual ~GpuCard() = default;

  // Returns name, driver, index and memory; the free memory is that of now.
  virtual proto::GpuCard Describe() = 0;
  // Starts a session; there may be one at a time. Errors: the capacity is not free; no memory
  // pools; the kernels cannot be loaded.
  virtual absl::StatusOr<std::unique_ptr<GpuSession>> Start(const GpuSessionOptions& options) = 0;
  // Calls every function that a sweep counts, with several sizes; TakeTimes() returns their times.
  // See cuda/cuda_device.h.
  virtual absl::Status MeasureCosts() = 0;
  // Returns the driver calls since the last TakeTimes(), by call and size.
  virtual std::vector<proto::GpuTime> TakeTimes() = 0;
};

// The circumstances of a run on the GPU.
struct GpuRunContext {
  proto::GpuCard card;
  proto::GpuRun::Pace pace = proto::GpuRun::none;
  std::optional<proto::GpuVerification> verification;
  std::vector<std::string> verify_faults;  // sentences
  // One for each measured repetition, in order.
  std::vector<proto::GpuRepetition> repetitions;  // only the times; ReportGpu() fills in the rest
  std::vector<proto::GpuTime> times;              // of all repetitions
};

// Reports predicted and measured runs. `measured` holds at least one run.
proto::DeviceReport ReportGpu(const RunPlan& plan, const proto::RecordedPeaks& recorded,
                              const DeviceRun& predicted, const std::vector<MeasuredRun>& measured,
                              GpuRunContext context);

// Returns a sentence such as "needs 20.1 GiB at event 12 and the device has 11.9 GiB free".
std::string ShortageSentence(const RunPlan& plan, const Shortage& shortage);

// Keeps the pace of a run on a GPU, and may end it.
class Pacer : public Intervention, public Observer {
 public:
  virtual int64_t taken_ns() const = 0;
  // Returns what ended the run, such as "SIGINT"; "" if nothing did.
  virtual std::string stopped_by() const = 0;
};

// How to replay a file on a GPU.
struct GpuQuestion {
  std::optional<RunBackend> backend;  // absent: as the settings say
  bool by_ballast = false;
  bool at_recorded_pace = false;
  bool verify = false;
  StartPolicy start = StartPolicy::kRecorded;
  int64_t repetitions = 1;
  // `times`: when each request is due, in microseconds; empty: as fast as possible.
  std::function<std::unique_ptr<Pacer>(const GpuSession& session,
                                       const std::vector<int64_t>& times)>
      make_pacer;
};

// Asks the question about one file after another, and collects the times of the driver's calls in
// all of them.
class GpuAsker {
 public:
  // Both arguments must outlive this.
  GpuAsker(GpuCard& card, const GpuQuestion& question) : card_(card), question_(question) {}
  GpuAsker(const GpuAsker&) = delete;
  GpuAsker& operator=(const GpuAsker&) = delete;

  // Predicts, refuses what the GPU cannot hold (ResourceExhausted, nothing allocated), runs, and
  // compares. Errors name `file`. Other errors: a pace that was not recorded, the driver's,
  // Cancelled.
  absl::StatusOr<proto::DeviceReport> Ask(const std::string& file, const Study& study,
                                          ProgressSink* progress);

  // Makes calls only to measure their times.
  absl::Status MeasureCosts();
  // Returns the costs of everything measured so far, without a date.
  proto::GpuCosts Costs();

 private:
  // The times of calls, in the order in which kinds of calls were first seen.
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

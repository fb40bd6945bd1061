// One device of an opened file, and what was found out about it.
#ifndef MEMREPLAY_SIM_STUDY_STUDY_H_
#define MEMREPLAY_SIM_STUDY_STUDY_H_

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <optional>

#include "absl/status/statusor.h"
#include "sim/category/meanings.h"
#include "sim/device/call_costs.h"
#include "sim/device/recorded_device.h"
#include "sim/recording/exact_replay.h"
#include "sim/recording/replay_settings.h"
#include "sim/recording/sampled_replay.h"
#include "sim/run/replay.h"
#include "sim/study/control.h"
#include "sim/study/what_if.h"
#include "trace/schedule/schedule.h"
#include "trace/value/memory_state.h"
#include "trace/value/trace.h"

namespace memreplay {

// Everything is found when it is first needed, and then kept. A run is a pure function of the
// schedule and its settings, so no question makes one that another has made. Thread-safe.
class Study {
 public:
  // What opening the file has found out already (study_trace.h).
  struct Known {
    InferredPools pools;
    std::optional<Schedule> schedule;    // with those pools
    std::optional<SampledReplay> exact;  // under the recorded settings
  };

  // `device_index` is a position in trace->devices.
  Study(std::shared_ptr<const Trace> trace, size_t device_index, ReplaySettings settings,
        Known known);
  // Of a schedule that was built for the purpose.
  Study(Schedule schedule, ReplaySettings settings);
  Study(const Study&) = delete;
  Study& operator=(const Study&) = delete;

  const Trace& trace() const { return *trace_; }
  size_t device_index() const { return device_index_; }
  int device() const { return trace_->devices[device_index_].device; }
  // Those asked about.
  const ReplaySettings& settings() const { return settings_; }

  const Schedule& schedule() const;
  // The same, perhaps without requests(): for what is found out without a run.
  const Schedule& recording() const;

  // What each allocation is for.
  const Meanings& meanings() const;

  // The recording replayed as it happened, under its own settings and those answers of the driver
  // that it holds. None of these for a program.
  const SampledReplay& AsRecorded() const;
  // The same, watched: one more run, if it was made before.
  SampledReplay WatchAsRecorded(Observer* observer, bool keep_segments = false) const;
  ExactReplayResult WatchExactly(Observer* observer) const;

  // What the recording shows of its card, and the segments that it began with. Empty for a program.
  const CardLimits& card() const { return Exact().card; }
  const MemoryState& start() const { return Exact().start.segments; }
  // `settings` on that card; see OnRecordedCard().
  ReplaySettings OnCard(const ReplaySettings& settings) const {
    return OnRecordedCard(settings, card());
  }

  // The control of all what-ifs; absent for a program. Two runs. Error: ReplayWhatIf()'s.
  absl::StatusOr<std::optional<Control>> FindControl() const;

  // What a run under other settings comes to, without its segments at the end. Begins with
  // start(). `costs` may be null. Error: ReplayWhatIf()'s.
  absl::StatusOr<WhatIfResult> Run(const ReplaySettings& settings,
                                   StartPolicy policy = StartPolicy::kRecorded,
                                   const CallCosts* costs = nullptr) const;
  // Its peak of reserved memory with addresses in the other order.
  absl::StatusOr<Bytes> PeakInOtherOrder(const ReplaySettings& settings,
                                         StartPolicy policy = StartPolicy::kRecorded) const;
  // Options of runs that are watched, or made for what Run() does not tell: they begin with
  // start().
  WhatIfOptions Options(StartPolicy policy = StartPolicy::kRecorded) const;

 private:
  // What a run depends on.
  struct RunKey {
    AllocatorConfig config;
    const TorchProfile* profile;
    std::optional<Bytes> capacity;
    std::optional<double> fraction;
    AddressOrder order;
    StartPolicy policy;
    const CallCosts* costs;
    bool operator==(const RunKey&) const = default;
  };
  struct MadeRun {
    RunKey key;
    absl::StatusOr<WhatIfResult> result;
  };

  const ExactReplayResult& Exact() const;
  ReplaySettings AsRecordedSettings() const;

  const std::shared_ptr<const Trace> trace_;
  const size_t device_index_;
  const ReplaySettings settings_;
  mutable std::recursive_mutex mutex_;  // of what is found, but for what has its own
  mutable InferredPools pools_;         // until the schedule has them
  mutable std::optional<Schedule> schedule_;
  mutable std::optional<Schedule> recording_;  // without requests
  mutable std::optional<SampledReplay> sampled_;
  mutable std::optional<ExactReplayResult> exact_;  // where no sampled replay was requested
  mutable std::optional<absl::StatusOr<std::optional<Control>>> control_;
  mutable std::mutex meanings_mutex_;
  mutable std::optional<Meanings> meanings_;
  mutable std::mutex runs_mutex_;
  mutable std::list<MadeRun> runs_;
};

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_STUDY_STUDY_H_

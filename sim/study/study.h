// The devices of an opened file, the choice of their settings, and what was found out about each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "sim/category/category_table.h"
#include "sim/category/meanings.h"
#include "sim/device/recorded_device.h"
#include "sim/device/simulated_device.h"
#include "sim/recording/exact_replay.h"
#include "sim/recording/replay_settings.h"
#include "sim/recording/sampled_replay.h"
#include "sim/run/replay.h"
#include "sim/study/what_if.h"
#include "trace/schedule/schedule.h"
#include "trace/value/memory_state.h"
#include "trace/value/trace.h"
#include "trace/value/units.h"

namespace memreplay {

// The control of what-ifs, the run in which nothing is changed: the recording's own settings on a
// device with the memory that the recording's had.
struct Control {
  Bytes peak_reserved;
  Bytes other_order_peak_reserved;  // with addresses in OtherOrder()
  uint64_t ooms = 0;
  uint64_t device_calls = 0;
};

constexpr AddressOrder OtherOrder(AddressOrder order) {
  return order == AddressOrder::kUpwards ? AddressOrder::kChunksDownwards : AddressOrder::kUpwards;
}

// Returns `settings` on a device with the memory that PyTorch could get, if a request was refused
// in the recording and neither a capacity nor an unlimited device is requested. That is what was in
// use and free when memory ran out, else the maximum known to have been granted. Unless one of
// these is requested, memory fractions are of the recorded GPU's memory, if that is known.
ReplaySettings OnRecordedGpu(const ReplaySettings& settings, const GpuLimits& card);

// What the allocations of a recording are for, found when it is first needed or on other threads.
struct CategoriesSought {
  std::shared_future<Meanings> meanings;
  std::shared_future<CategoryTable> table;  // CategoriesOverTime() of the whole recording
};
CategoriesSought SeekCategories(const std::shared_ptr<const Schedule>& recording, size_t threads);

// One device of an opened file. Everything is found when it is first needed, and then kept. A run
// is a pure function of the schedule and its settings, so no question repeats a run of another.
// Thread-safe.
class Study {
 public:
  // What opening the file has already found (StudyTrace()).
  struct Known {
    InferredPools pools;
    std::optional<Schedule> schedule;    // with those pools
    std::optional<SampledReplay> exact;  // under the recorded settings
    std::optional<ExactStart> start;     // likewise, of a replay that was stopped
    CategoriesSought categories;         // if they are sought already
  };

  // `device_index` is a position in trace->devices.
  Study(std::shared_ptr<const Trace> trace, size_t device_index, ReplaySettings settings,
        Known known);
  // Creates a study of a schedule that was built for the purpose.
  Study(Schedule schedule, ReplaySettings settings);
  Study(const Study&) = delete;
  Study& operator=(const Study&) = delete;

  const Trace& trace() const { return *trace_; }
  size_t device_index() const { return device_index_; }
  int device() const { return trace_->devices[device_index_].device; }
  // Returns the requested settings.
  const ReplaySettings& settings() const { return settings_; }

  const Schedule& schedule() const;
  // Returns the same, perhaps without requests(), for what needs no run.
  const Schedule& recording() const;

  // Return what each allocation is for, and how much each category holds in the whole recording.
  const Meanings& meanings() const;
  const CategoryTable& categories() const;

  // Returns the replay of the recording as it happened, under its own settings and with its
  // recorded driver responses. Must not be called for a schedule that was written, nor must the
  // next two.
  const SampledReplay& AsRecorded() const;
  // Run the same with an observer. This is an additional run if one was already made.
  SampledReplay WatchAsRecorded(Observer* observer, bool keep_segments = false) const;
  ExactReplayResult WatchExactly(Observer* observer) const;

  // Return what the recording shows of its GPU, and the segments that it began with. Empty for a
  // schedule that was written.
  const GpuLimits& card() const { return Exact().card; }
  const MemoryState& start() const { return Exact().start.segments; }
  // Returns `settings` on that GPU; see OnRecordedGpu().
  ReplaySettings OnCard(const ReplaySettings& settings) const {
    return OnRecordedGpu(settings, card());
  }

  // Returns the control of all what-ifs, after two runs; nullopt for a schedule that was written.
  // Error: ReplayWhatIf()'s.
  absl::StatusOr<std::optional<Control>> FindControl() const;

  // Returns the result of a run under other settings, without its segments at the end. The run
  // begins with start(). `costs` may be null. Error: ReplayWhatIf()'s.
  absl::StatusOr<WhatIfResult> Run(const ReplaySettings& settings,
                                   StartPolicy policy = StartPolicy::kRecorded,
                                   const CallCosts* costs = nullptr) const;
  // Returns its peak of reserved memory with addresses in the other order.
  absl::StatusOr<Bytes> PeakInOtherOrder(const ReplaySettings& settings,
                                         StartPolicy policy = StartPolicy::kRecorded) const;
  // Returns options for runs that are observed, or whose results Run() does not contain. They begin
  // with start().
  WhatIfOptions Options(StartPolicy policy = StartPolicy::kRecorded) const;

 private:
  // What a run depends on.
  struct RunKey {
    AllocatorConfig config;
    const TorchProfile* profile;
    std::optional<Bytes> capacity;
    std::optional<Bytes> total;
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

  const CategoriesSought& Sought() const;
  const ExactReplayResult& Exact() const;
  // Returns what is known of the start of a replay as recorded; null if nothing is.
  const ExactStart* KnownStart() const;
  ReplaySettings AsRecordedSettings() const;

  const std::shared_ptr<const Trace> trace_;
  const size_t device_index_;
  const ReplaySettings settings_;
  mutable std::recursive_mutex mutex_;  // for everything that has no mutex of its own
  mutable InferredPools pools_;         // until they are in the schedule
  mutable std::optional<Schedule> schedule_;
  mutable std::optional<Schedule> recording_;  // without requests
  const std::optional<ExactStart> start_;      // if known without a whole replay
  mutable std::optional<SampledReplay> sampled_;
  mutable std::optional<ExactReplayResult> exact_;  // if no sampled replay was requested
  mutable std::optional<absl::StatusOr<std::optional<Control>>> control_;
  mutable std::mutex sought_mutex_;
  mutable CategoriesSought sought_;
  mutable std::mutex runs_mutex_;
  mutable std::list<MadeRun> runs_;
};

// An open file: its content, and its devices under some settings.
struct OpenedFile {
  std::shared_ptr<const Trace> trace;                 // as read, or Explanation::trace
  ReplaySettings settings;                            // for every device
  std::vector<std::unique_ptr<const Study>> devices;  // in the order of trace->devices
};

// Studies every device under the settings of ResolveSettings(). If the release is inferred and
// several fit the layout, each is tried on the recorded events, the newest first. The first under
// which every event and final block is as recorded is chosen, else the one that gets furthest. This
// takes one replay if the newest is right, and at most one for each that fits; the study keeps the
// right one. If none of them is right, the other releases are tried. If none is right, what the
// recording leaves open may be the reason: the first of AllHypotheses() that explains it is taken.
// With more than one of `threads`, what the allocations of the first device with events are for is
// sought at the same time.
absl::StatusOr<OpenedFile> StudyTrace(const std::shared_ptr<const Trace>& trace,
                                      const SettingsRequest& request, size_t threads = 1);

}  // namespace memreplay

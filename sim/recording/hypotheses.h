// What a recording may leave open: each a guess that, if it is true, explains why the replay of a
// device leaves its recording.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "sim/recording/exact_replay.h"
#include "sim/settings/allocator_config.h"
#include "sim/settings/torch_profile.h"
#include "trace/schedule/schedule.h"
#include "trace/value/trace.h"

namespace memreplay {

// A device whose replay leaves its recording.
struct Unexplained {
  const std::shared_ptr<const Trace>& trace;
  size_t device;             // a position in trace->devices
  const Schedule& schedule;  // of that device, with nothing but what the file says
  const AllocatorConfig& config;
  const TorchProfile& profile;
  const RecordingFollowed& followed;
};

// What a file does not contain. With it, every event and every final block of a device is as
// recorded.
struct Explanation {
  InferredPools pools = {};
  std::shared_ptr<const Trace> trace = nullptr;  // a copy of the file's with notes, if needed
  std::optional<AllocatorConfig> config = {};    // at the first event, if not the one tried
  std::vector<std::string> notes = {};           // sentences for the report
};

// One guess; each has a row in hypotheses.cc.
struct Hypothesis {
  // Returns whether the file leaves room for it; no replay is made.
  bool (*applies)(const Trace& trace);
  // Whether the choices of another release than the recorded one say nothing about it.
  bool needs_recorded_release;
  // Returns the explanation, or nullopt if it is none. Replays once for each guess: up to hundreds
  // of times and tens of millions of events.
  std::optional<Explanation> (*explain)(const Unexplained& device);
};

// Returns all, in the order in which they are tried: the ones with fewer guesses first.
absl::Span<const Hypothesis> AllHypotheses();

}  // namespace memreplay

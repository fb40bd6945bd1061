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

// Options of MemPools, in files without notes of them (NoteKind::kPool). That a pool does not split
// its segments shows in what the allocator did. Returns whether the file has pools whose options it
// may not contain.
bool MayHavePoolOptions(const Trace& trace);
// Finds pools that do not split segments: where the replay leaves the recording, the pool of that
// event is taken as one. Explains flags of pools alone. At most one replay for each pool.
std::optional<Explanation> FindPoolOptions(const Unexplained& device);

// Private pools (of a CUDA graph or a MemPool) that no longer existed when a snapshot was taken.
// Before PyTorch 2.13 only the segments that still exist name their pool. The others show in what
// the allocator did not do: it did not use a block that fitted. Returns whether a segment was
// released that may have belonged to such a pool.
bool MayHaveGonePools(const Trace& trace);
// Finds released segments which, taken as those of private pools, explain the rest. A pool that the
// file does not name is called (1, 1), (2, 2) ..., which PyTorch's never are.
std::optional<Explanation> FindGonePools(const Unexplained& device);

// Settings that a script changed while it was recorded, in files without notes of it
// (NoteKind::kSettings). A file lists the settings at its end only. Changes show in what the
// allocator did: other settings explain it. Returns whether they may have changed: in a recording
// with events of one device only, since its settings are those of the process.
bool MayHaveChangedSettings(const Trace& trace);
// Finds the changes: looks for stretches of events which other settings explain in full, where the
// settings at the end are those that the file lists. If there are none, pools that are gone may
// explain what the changes leave open with which the replay follows the recording furthest. Does
// not look if a warm recording differs from its first event on.
std::optional<Explanation> FindChangedSettings(const Unexplained& device);

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

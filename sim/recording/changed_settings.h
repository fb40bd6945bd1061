// Settings that a script changed while it was recorded, in files without notes of it
// (NoteKind::kSettings). A file lists the settings at its end only. Changes show in what the
// allocator did: other settings explain it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "sim/recording/exact_replay.h"
#include "sim/settings/allocator_config.h"
#include "sim/settings/torch_profile.h"
#include "trace/schedule/schedule.h"
#include "trace/value/trace.h"

namespace memreplay {

// Returns whether the settings may have changed without a note: in a recording with events of one
// device only, since its settings are those of the process.
bool MayHaveChangedSettings(const Trace& trace);

// Changes that a file does not contain.
struct ChangedSettings {
  std::shared_ptr<const Trace> trace;  // a copy of the file's, with notes of the changes
  AllocatorConfig config;              // at the first event
  std::string note;                    // a sentence for the report
  RecordingFollowed followed;
};

// Finds the changes in a recording that does not replay exactly: looks for stretches of its events
// which other settings explain in full, so that with them every event and every final block is as
// recorded, and the settings at the end are those that the file lists. If there are none, and pools
// that are gone may explain the rest (MayHaveGonePools()), returns the changes with which the
// replay follows the recording furthest, or nullopt if none gets it further. Does not look if a
// warm recording differs from its first event on. `config` has the settings that the file lists;
// `without` is the result of `plain` under them. Replays once for each guess, up to hundreds of
// times and tens of millions of events.
std::optional<ChangedSettings> FindChangedSettings(const Schedule& plain,
                                                   const AllocatorConfig& config,
                                                   const TorchProfile& profile,
                                                   const RecordingFollowed& without);

}  // namespace memreplay

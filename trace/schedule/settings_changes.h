// The settings that a script gave the allocator while it was recorded, as Python noted them
// (NoteKind::kSettings, kFraction). Without such notes a file does not report changes.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "trace/value/trace.h"

namespace memreplay {

// Returns the texts (in StringTable) that were set before the first event of every device, in the
// order in which they were set; together they are what the allocators began with. Empty if no
// change was noted. O(notes).
std::vector<uint32_t> SettingsAtStart(const Trace& trace);

// What the script set later: a text, or the share of the GPU that PyTorch may use.
struct SettingsChange {
  EventKind kind = EventKind::kSettings;  // or kFraction
  uint64_t event = 0;           // the change came before this position in DeviceTrace::events
  uint32_t text = 0;            // StringTable
  Bytes fraction_of = Bytes();  // the GPU's memory; 0 for a text, or if unknown
  // True if the text is the last of SettingsAtStart(): the script restores what it found.
  bool is_restoring = false;
};

// Returns the changes on a device that follow `start`, which SettingsAtStart() returned for its
// trace, and the shares; ascending. O(the device's notes).
std::vector<SettingsChange> SettingsChanges(const DeviceTrace& device,
                                            absl::Span<const uint32_t> start);

}  // namespace memreplay

#include "trace/schedule/settings_changes.h"

#include <optional>
#include <utility>

namespace memreplay {
namespace {

std::vector<MemoryNote> SettingsOf(const DeviceTrace& device) {
  std::vector<MemoryNote> found;
  for (const MemoryNote& note : device.notes) {
    if (note.kind == NoteKind::kSettings) found.push_back(note);
  }
  return found;
}

}  // namespace

std::vector<uint32_t> SettingsAtStart(const Trace& trace) {
  // Each device has the same texts, but its first event may have come before other changes.
  std::optional<std::vector<uint32_t>> least;
  for (const DeviceTrace& device : trace.devices) {
    const std::vector<MemoryNote> notes = SettingsOf(device);
    if (notes.empty()) continue;
    std::vector<uint32_t> texts = {notes[0].name};
    for (size_t i = 1; i < notes.size() && notes[i].event == 0; ++i) texts.push_back(notes[i].name);
    if (!least.has_value() || texts.size() < least->size()) least = std::move(texts);
  }
  return least.value_or(std::vector<uint32_t>());
}

std::vector<SettingsChange> SettingsChanges(const DeviceTrace& device,
                                            absl::Span<const uint32_t> start) {
  std::vector<SettingsChange> changes;
  size_t texts = 0;
  for (const MemoryNote& note : device.notes) {
    if (note.kind == NoteKind::kFraction) {
      changes.push_back({.kind = EventKind::kFraction,
                         .event = note.event,
                         .text = note.name,
                         .fraction_of = Bytes(note.address.value())});
    } else if (note.kind == NoteKind::kSettings && texts++ >= start.size()) {
      changes.push_back({.event = note.event,
                         .text = note.name,
                         .is_restoring = !start.empty() && note.name == start.back()});
    }
  }
  return changes;
}

}  // namespace memreplay

// What Python knew of a program's memory while it was recorded: `memreplay record` and
// memreplay.recording() note it (python/memreplay/_notes.py).
#ifndef MEMREPLAY_TRACE_VALUE_NOTE_H_
#define MEMREPLAY_TRACE_VALUE_NOTE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "trace/value/units.h"

namespace memreplay {

enum class NoteKind : uint8_t {
  // Something begins, and the next kEnd that belongs to no later beginning ends it.
  kForward,     // a model's forward() with gradients; name = its class
  kEvaluation,  // one without gradients
  kModule,      // forward() of a module inside; name = its path, "transformer.h.3.attn"
  kBackward,    // the engine of autograd
  kOptimizer,   // Optimizer.step(); name = its class
  kEnd,
  // The allocation that is live at `address` is the storage of:
  kParameter,
  kBuffer,
  kGradient,
  kOptimizerState,
  kInput,   // what a model was called with
  kOutput,  // what a model returned
  kLoss,    // a number that it returned, or that backward began with
};
inline constexpr size_t kNoteKinds = static_cast<size_t>(NoteKind::kLoss) + 1;

// As in files, by kind.
inline constexpr std::array<std::string_view, kNoteKinds> kNoteNames = {
    "forward", "evaluation", "module",          "backward", "optimizer", "end", "parameter",
    "buffer",  "gradient",   "optimizer_state", "input",    "output",    "loss"};

inline std::optional<NoteKind> NoteKindFromName(std::string_view name) {
  for (size_t i = 0; i < kNoteKinds; ++i) {
    if (kNoteNames[i] == name) return static_cast<NoteKind>(i);
  }
  return std::nullopt;
}

// One note of Python about the script.
struct MemoryNote {
  NoteKind kind = NoteKind::kEnd;
  uint32_t name = 0;   // StringTable
  uint64_t event = 0;  // it was true before this position in DeviceTrace::events
  Address address;     // of what is the storage of something; else null
  friend bool operator==(const MemoryNote&, const MemoryNote&) = default;
};

}  // namespace memreplay

#endif  // MEMREPLAY_TRACE_VALUE_NOTE_H_

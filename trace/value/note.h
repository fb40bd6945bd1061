// What Python knew about a script's memory during a recording; `memreplay record` and
// memreplay.recording() write these notes (python/memreplay/_notes.py).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "trace/value/units.h"

namespace memreplay {

// The meaning of a note.
enum class NoteKind : uint8_t {
  // The start of a span, which ends at the next kEnd that does not belong to a later start.
  kForward,     // a model's forward() with gradients; name = its class
  kEvaluation,  // the same without gradients
  kModule,      // forward() of an inner module; name = its path, "transformer.h.3.attn"
  kBackward,    // autograd's engine
  kOptimizer,   // Optimizer.step(); name = its class
  kEnd,
  // The role of the storage at `address`, a live allocation.
  kParameter,
  kBuffer,
  kGradient,
  kOptimizerState,
  kInput,   // an argument of a model
  kOutput,  // a result of a model
  kLoss,    // a number that a model returned or that backward started from
  // The script set the allocator's settings; name = the text. The first note of a device has the
  // text that held before any change.
  kSettings,
  // The script limited PyTorch to a share of the GPU; name = the share, address.value() = the GPU's
  // memory in bytes.
  kFraction,
  // The script made a MemPool with options; name = "no_split", "use_on_oom" or both with a comma,
  // address.value() = the second number of its id, whose first is 0.
  kPool,
};
// The options in the name of a kPool.
inline constexpr std::string_view kNoSplitOption = "no_split";
inline constexpr std::string_view kUseOnOomOption = "use_on_oom";
inline constexpr size_t kNoteKinds = static_cast<size_t>(NoteKind::kPool) + 1;

// The names in files, by kind.
inline constexpr std::array<std::string_view, kNoteKinds> kNoteNames = {
    "forward",   "evaluation", "module",          "backward",        "optimizer", "end",
    "parameter", "buffer",     "gradient",        "optimizer_state", "input",     "output",
    "loss",      "settings",   "memory_fraction", "mem_pool"};

// Returns whether the note is about the allocator, not about what the script does.
constexpr bool IsOfAllocator(NoteKind kind) {
  return kind == NoteKind::kSettings || kind == NoteKind::kFraction || kind == NoteKind::kPool;
}

inline std::optional<NoteKind> NoteKindFromName(std::string_view name) {
  for (size_t i = 0; i < kNoteKinds; ++i) {
    if (kNoteNames[i] == name) return static_cast<NoteKind>(i);
  }
  return std::nullopt;
}

// A note that Python made about the script.
struct MemoryNote {
  NoteKind kind = NoteKind::kEnd;
  uint32_t name = 0;   // StringTable
  uint64_t event = 0;  // the note precedes this position in DeviceTrace::events
  Address address;     // of a storage; null for spans and settings
  friend bool operator==(const MemoryNote&, const MemoryNote&) = default;
};

}  // namespace memreplay

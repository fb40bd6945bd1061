// Writes the requests of a schedule as they are made, with a label for each allocation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/types/span.h"
#include "trace/value/trace.h"
#include "trace/value/trace_builder.h"
#include "trace/value/units.h"

namespace memreplay::synth {

// The name of a request: the members n, t, dt and sh of flat JSON lines.
struct Label {
  std::string_view name;   // "h.3.attn.c_attn mm"
  std::string_view tag;    // "activation", "workspace" ...
  std::string_view dtype;  // "f16"; empty for raw memory
  absl::Span<const int64_t> sizes;
};

// A writer for the requests of one stream. Handles count from 1 and are never reused.
class ProgramWriter {
 public:
  ProgramWriter() : builder_("synth") { builder_.trace().is_program = true; }

  uint64_t Allocate(Bytes size, const Label& label);
  void Free(uint64_t handle);
  void Phase(std::string_view name) { Mark(MarkKind::kPhase, 0, name); }
  void Moment(std::string_view name) { Mark(MarkKind::kLabel, 0, name); }  // inside a phase
  void Retag(uint64_t handle, std::string_view tag) { Mark(MarkKind::kRetag, handle, tag); }

  // Returns the schedule. `header` is a JSON object with the members config, seed or meta, and may
  // be empty. Nothing is recorded after this.
  Trace Finish(std::string header);

 private:
  void Mark(MarkKind kind, uint64_t handle, std::string_view text);

  TraceBuilder builder_;
  uint64_t last_handle_ = 0;
  bool finished_ = false;
};

}  // namespace memreplay::synth

#include "synth/program_writer.h"

#include <array>
#include <utility>

#include "absl/strings/str_join.h"
#include "trace/formats/flat/flat_records.h"
#include "trace/value/strings.h"

namespace memreplay::synth {

uint64_t ProgramWriter::Allocate(Bytes size, const Label& label) {
  ++last_handle_;
  if (finished_) return last_handle_;
  Trace& trace = builder_.trace();
  std::array<uint32_t, 2> frames;
  size_t count = 0;
  frames[count++] = trace.stacks.InternFrame(
      {trace.strings.Intern(label.tag), trace.strings.Intern(label.name), 0});
  if (!label.dtype.empty()) {
    const std::string tensor =
        StrCat("\"dt\":\"", label.dtype, "\",\"sh\":[", absl::StrJoin(label.sizes, ","), "]");
    frames[count++] = trace.stacks.InternFrame(
        {trace.strings.Intern(kTensorFrame), trace.strings.Intern(tensor), 0});
  }
  builder_.Add(
      0, {.kind = EventKind::kAlloc,
          .address = Address(last_handle_),
          .size = size,
          .stream = builder_.StreamNumber(StreamHandle(0)),
          .text_or_stack = trace.stacks.InternStack(absl::MakeConstSpan(frames.data(), count))});
  return last_handle_;
}

void ProgramWriter::Free(uint64_t handle) {
  if (finished_) return;
  builder_.Add(0, {.kind = EventKind::kFree,
                   .address = Address(handle),
                   .stream = builder_.StreamNumber(StreamHandle(0))});
}

void ProgramWriter::Mark(MarkKind kind, uint64_t handle, std::string_view text) {
  if (finished_) return;
  Event event = {.address = Address(handle),
                 .stream = TraceBuilder::kNoStream,
                 .text_or_stack = builder_.trace().strings.Intern(text)};
  event.set_mark(kind);
  builder_.Add(0, event);
}

Trace ProgramWriter::Finish(std::string header) {
  finished_ = true;
  builder_.trace().program_header = std::move(header);
  return std::move(builder_).Finish();
}

}  // namespace memreplay::synth

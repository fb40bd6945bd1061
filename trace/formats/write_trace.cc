#include "trace/formats/write_trace.h"

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "trace/formats/flat/flat_jsonl.h"
#include "trace/formats/protobuf/protobuf_format.h"
#include "trace/formats/torch/torch_snapshot.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

template <absl::Status (*write)(const Trace& trace, ByteSink& sink)>
absl::Status Lossless(const Trace& trace, ByteSink& sink, std::vector<std::string>*) {
  return write(trace, sink);
}

constexpr TraceFormat kWritable[] = {
    {"protobuf", ".mrpb .pb", "for storage: exact, small, quick to read",
     Lossless<WriteProtobufTrace>},
    {"flat_jsonl", ".jsonl", "for reading and writing by hand: one JSON object per line",
     Lossless<WriteFlatJsonl>},
    {"torch_snapshot_pickle", ".pickle .pkl", "PyTorch's memory snapshot", WriteTorchSnapshot},
};

}  // namespace

absl::Span<const TraceFormat> WritableFormats() { return kWritable; }

const TraceFormat* FindWritableFormat(std::string_view name) {
  for (const TraceFormat& format : kWritable) {
    if (format.name == name) return &format;
  }
  return nullptr;
}

const TraceFormat* WritableFormatOfPath(std::string_view path) {
  const TraceFormat* best = nullptr;
  size_t longest = 0;
  for (const TraceFormat& format : kWritable) {
    for (const absl::string_view extension : absl::StrSplit(ToAbsl(format.extensions), ' ')) {
      if (extension.size() > longest && absl::EndsWith(ToAbsl(path), extension)) {
        best = &format;
        longest = extension.size();
      }
    }
  }
  return best;
}

}  // namespace memreplay

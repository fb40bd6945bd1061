#include "trace/formats/open_trace.h"

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "trace/bytes/byte_source.h"
#include "trace/formats/flat/flat_jsonl.h"
#include "trace/formats/format_names.h"
#include "trace/formats/op_log/op_log_reader.h"
#include "trace/formats/protobuf/protobuf_format.h"
#include "trace/formats/torch/torch_snapshot.h"
#include "trace/program/program_reader.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// The number of (decompressed) bytes that determine the format.
constexpr size_t kHead = 4096;

struct Format {
  std::string_view name;
  bool (*detect)(std::string_view head);
  absl::StatusOr<Trace> (*read)(ByteSource& source, const std::string& path);
};

// Wraps a reader whose messages do not name the file.
template <absl::StatusOr<Trace> (*read)(ByteSource& source)>
absl::StatusOr<Trace> Named(ByteSource& source, const std::string& path) {
  absl::StatusOr<Trace> trace = read(source);
  if (trace.ok()) return trace;
  return Within(path, trace.status());
}

// The first format that recognises the head reads the file.
constexpr Format kFormats[] = {
    {FormatTitle("torch_snapshot_pickle"), IsSnapshotPickle, ReadSnapshotPickle},
    {FormatTitle("protobuf"), LooksLikeProtobufTrace, Named<ReadProtobufTrace>},
    {FormatTitle("flat_jsonl"), LooksLikeFlatJsonl, Named<ReadFlatJsonl>},
    {FormatTitle("program_text"), LooksLikeProgramText, Named<ReadProgramText>},
    {FormatTitle("program_json"), LooksLikeProgramJson, Named<ReadProgramJson>},
    {FormatTitle("op_log"), LooksLikeOpLog, Named<ReadOpLog>},
    {FormatTitle("torch_snapshot_json"), IsSnapshotJson, ReadSnapshotJson},
    {FormatTitle("torch_snapshot_page"), IsSnapshotPage, ReadSnapshotPage},
};

constexpr std::string_view kRecordFirst =
    "expected a snapshot: call torch.cuda.memory._record_memory_history() before the run and "
    "torch.cuda.memory._dump_snapshot(\"FILE.pickle\") after it";

constexpr std::string_view kExplainTexts = "; memreplay explain reads error texts and logs";

// A file that resembles a trace, or stands for one, but has no allocator events.
struct Foreign {
  bool (*detect)(std::string_view head);
  std::string_view what;
  std::string_view remedy = kRecordFirst;
};

std::string_view WithoutSpace(std::string_view head) {
  const size_t begin = head.find_first_not_of(" \t\r\n");
  return begin == std::string_view::npos ? "" : head.substr(begin);
}

bool IsChromeTrace(std::string_view head) {
  const std::string_view text = WithoutSpace(head);
  if (text.substr(0, 1) != "{") return false;
  for (const std::string_view key : {"\"traceEvents\"", "\"deviceProperties\"",
                                     "\"baseTimeNanoseconds\"", "\"distributedInfo\""}) {
    if (text.find(key) != std::string_view::npos) return true;
  }
  return false;
}

// Recognises "[[times], [sizes]]" or, raw, "[[time, action, bytes, category], ...".
bool IsMemoryTimeline(std::string_view head) {
  const std::string_view text = WithoutSpace(head);
  if (text.substr(0, 1) != "[") return false;
  const std::string_view inner = WithoutSpace(text.substr(1));
  if (inner.substr(0, 1) != "[") return false;
  const std::string_view number = WithoutSpace(inner.substr(1));
  return !number.empty() && (number[0] == '-' || (number[0] >= '0' && number[0] <= '9'));
}

bool IsPage(std::string_view head) {
  const std::string text = absl::AsciiStrToLower(ToAbsl(WithoutSpace(head).substr(0, 9)));
  return text.starts_with("<html") || text.starts_with("<!doctype");
}

bool IsLfsPointer(std::string_view head) {
  return head.starts_with("version https://") && head.find("\noid ") != std::string_view::npos;
}

// An error text or a log, perhaps in UTF-16.
bool IsText(std::string_view head) {
  return head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff") ||
         absl::c_none_of(head, [](char c) {
           return static_cast<unsigned char>(c) < ' ' &&
                  std::string_view("\t\r\n\b\f\x1b").find(c) == std::string_view::npos;
         });
}

constexpr Foreign kForeign[] = {
    {IsChromeTrace, "a trace of torch.profiler (Chrome's format, kineto): times of operations"},
    {IsMemoryTimeline, "a memory timeline of torch.profiler: sums without addresses or streams"},
    {IsPage, "an HTML page without a snapshot"},
    {IsLfsPointer, "a pointer of Git LFS, which stands for a file that was not fetched",
     "fetch it with git lfs pull"},
};

// Reports segments of the final state that no driver returns. A file that memreplay wrote may have
// these diagnostics already.
void CheckSegments(Trace& trace) {
  if (trace.diagnostics.count(DiagnosticKind::kImpossibleSegment) > 0) return;
  const auto text = [](const SegmentInfo& segment) {
    return StrCat("segment at 0x", absl::Hex(segment.address.value()), " of ",
                  segment.total_size.value(), " bytes");
  };
  for (const DeviceTrace& device : trace.devices) {
    const SegmentInfo* before = nullptr;  // the last possible segment
    for (size_t i = 0; i < device.final_state.size(); ++i) {
      const SegmentInfo& segment = device.final_state[i];
      if (IsPossible(segment, before)) {
        before = &segment;
        continue;
      }
      std::string where = text(segment);
      if (IsPossible(segment, nullptr)) StrAppend(&where, " overlaps the ", text(*before));
      trace.diagnostics.Add(DiagnosticKind::kImpossibleSegment, i, where);
    }
  }
}

}  // namespace

absl::StatusOr<Trace> OpenTrace(const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> source, ByteSource::Open(path));
  return OpenTrace(*source, path);
}

absl::StatusOr<Trace> OpenTrace(ByteSource& source, const std::string& path) {
  const std::string_view head = source.Peek(kHead).substr(0, kHead);
  if (!source.status().ok() && head.empty()) {
    return absl::InvalidArgumentError(StrCat(path, ": ", source.status().message()));
  }
  if (head.empty()) return absl::InvalidArgumentError(StrCat(path, ": is empty once decompressed"));
  std::string names;
  for (const Format& format : kFormats) {
    if (format.detect(head)) {
      absl::StatusOr<Trace> trace = format.read(source, path);
      if (trace.ok()) CheckSegments(*trace);
      return trace;
    }
    StrAppend(&names, names.empty() ? "" : ", ", format.name);
  }
  for (const Foreign& foreign : kForeign) {
    if (!foreign.detect(head)) continue;
    return absl::InvalidArgumentError(StrCat(path, ": ", foreign.what, "; ", foreign.remedy));
  }
  return absl::InvalidArgumentError(StrCat(path, ": unknown format: the file begins with \"",
                                           absl::CHexEscape(ToAbsl(head.substr(0, 16))),
                                           "\"; expected one of: ", names,
                                           IsText(head) ? kExplainTexts : ""));
}

bool IsTextOfNoFormat(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  const absl::StatusOr<std::unique_ptr<ByteSource>> source = ByteSource::Open(path);
  if (!source.ok()) return false;
  const std::string_view head = (*source)->Peek(kHead).substr(0, kHead);
  const auto detects = [&](const auto& row) { return row.detect(head); };
  return !head.empty() && IsText(head) && absl::c_none_of(kFormats, detects) &&
         absl::c_none_of(kForeign, detects);
}

}  // namespace memreplay

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "trace/bytes/json_scanner.h"
#include "trace/formats/text/text_format.h"
#include "trace/formats/text/text_names.h"
#include "trace/value/layout_fields.h"
#include "trace/value/strings.h"
#include "trace/value/trace_builder.h"

namespace memreplay {
namespace {

class TextWriter {
 public:
  TextWriter(const Trace& trace, ByteSink& sink)
      : trace_(trace),
        output_(sink),
        out_(output_.text()),
        frame_numbers_(trace.stacks.frame_count()),
        stack_numbers_(trace.stacks.size()) {}

  absl::Status Write() {
    if (absl::Status status = CheckTrace(trace_); !status.ok()) return status;
    Header();
    for (const DeviceTrace& device : trace_.devices) {
      StrAppend(&out_, "device ", device.device, device.has_final_state ? " final\n" : "\n");
      for (size_t i = 0; i < device.events.size(); ++i) {
        WriteEvent(device, i);
        output_.MaybeFlush();
      }
      for (const SegmentInfo& segment : device.final_state) {
        WriteSegment(segment);
        output_.MaybeFlush();
      }
    }
    for (const Annotation& annotation : trace_.annotations) {
      out_ += "annotation";
      Value("name", trace_.strings[annotation.name]);
      Value("stage", trace_.strings[annotation.stage]);
      StrAppend(&out_, " device=", annotation.device, " time=", annotation.time_us, "\n");
      output_.MaybeFlush();
    }
    for (int i = 0; i < static_cast<int>(DiagnosticKind::kCount); ++i) {
      Diagnose(static_cast<DiagnosticKind>(i));
    }
    return output_.Finish();
  }

 private:
  void Value(std::string_view key, std::string_view text) {
    StrAppend(&out_, " ", key, "=");
    if (IsBareWord(text)) {
      out_ += text;
    } else {
      AppendJsonString(text, &out_);
    }
  }
  void Hex(uint64_t address) { StrAppend(&out_, " 0x", absl::Hex(address)); }
  void StackValue(uint32_t stack) {
    if (stack != kNoStack) StrAppend(&out_, " stack=", stack_numbers_[stack]);
  }

  void Header() {
    StrAppend(&out_, kTextMagic, " ", kTextVersion, "\n");
    if (trace_.is_program) out_ += "program\n";
    if (!trace_.program_header.empty()) {
      out_ += "program_header";
      Value("json", trace_.program_header);
      out_ += "\n";
    }
    if (!trace_.streams.empty()) {
      out_ += "streams";
      for (const StreamHandle stream : trace_.streams) StrAppend(&out_, " ", stream.value());
      out_ += "\n";
    }
    if (trace_.pools.size() > 1) {
      out_ += "pools";
      for (size_t i = 1; i < trace_.pools.size(); ++i) {
        StrAppend(&out_, " ", trace_.pools[i].first, ",", trace_.pools[i].second);
      }
      out_ += "\n";
    }
    std::string facts;
    for (const LayoutField& field : kLayoutFields) {
      if (trace_.layout.*field.field) StrAppend(&facts, " ", field.name);
    }
    if (!facts.empty()) StrAppend(&out_, "layout", facts, "\n");
    if (trace_.layout.pickle_protocol != 0) {
      StrAppend(&out_, "pickle_protocol ", trace_.layout.pickle_protocol, "\n");
    }
    if (trace_.total_memory) StrAppend(&out_, "total ", trace_.total_memory->value(), "\n");
    if (trace_.memory_fraction) {
      StrAppend(&out_, "fraction ", FormatDouble(*trace_.memory_fraction), "\n");
    }
    if (trace_.completion == Completion::kExplicit) out_ += "completion explicit\n";
    if (trace_.settings) Settings(*trace_.settings);
  }

  void Settings(const RecordedSettings& settings) {
    out_ += "conf";
    Value("text", settings.conf);
    if (settings.max_split_size) StrAppend(&out_, " max_split_size=", *settings.max_split_size);
    if (settings.garbage_collection_threshold) {
      StrAppend(&out_, " garbage_collection_threshold=",
                FormatDouble(*settings.garbage_collection_threshold));
    }
    const auto flag = [this](std::string_view key, const std::optional<bool>& value) {
      if (value) StrAppend(&out_, " ", key, *value ? "=true" : "=false");
    };
    flag("expandable_segments", settings.expandable_segments);
    flag("graph_capture_record_stream_reuse", settings.graph_capture_record_stream_reuse);
    std::string pairs;
    for (const auto& [size, divisions] : settings.roundup_power2_divisions) {
      StrAppend(&pairs, pairs.empty() ? "" : ",", size, ":", divisions);
    }
    if (!pairs.empty()) StrAppend(&out_, " roundup_power2_divisions=", pairs);
    out_ += "\n";
  }

  // Makes the stack known, on lines of their own before the one that uses it.
  void DefineStack(uint32_t stack) {
    if (stack == kNoStack || stack_numbers_[stack] != 0) return;
    for (const uint32_t index : trace_.stacks[stack]) {
      if (frame_numbers_[index] != 0) continue;
      const Frame& frame = trace_.stacks.frame(index);
      frame_numbers_[index] = ++frames_;
      StrAppend(&out_, "frame ", frames_);
      Value("file", trace_.strings[frame.filename]);
      StrAppend(&out_, " line=", frame.line);
      Value("name", trace_.strings[frame.name]);
      out_ += "\n";
    }
    stack_numbers_[stack] = ++stacks_;
    StrAppend(&out_, "stack ", stacks_);
    for (const uint32_t index : trace_.stacks[stack]) {
      StrAppend(&out_, " ", frame_numbers_[index]);
    }
    out_ += "\n";
  }

  void WriteEvent(const DeviceTrace& device, size_t index) {
    const Event& event = device.events[index];
    const uint32_t stack = HasText(event.kind) ? kNoStack : event.text_or_stack;
    // A stack of one frame without a line is what tag and name say.
    const Frame* label = nullptr;
    if (const absl::Span<const uint32_t> frames = trace_.stacks[stack]; frames.size() == 1) {
      const Frame& frame = trace_.stacks.frame(frames[0]);
      if (frame.line == 0 && (frame.filename != kNoText || frame.name != kNoText)) label = &frame;
    }
    if (label == nullptr) DefineStack(stack);

    out_ += EventKindName(event.kind);
    if (trace_.is_program && IsRequest(event.kind)) {
      const bool has_handle = event.kind == EventKind::kAlloc || event.kind == EventKind::kFree ||
                              event.kind == EventKind::kRecordStream;
      if (has_handle || !event.address.is_null()) StrAppend(&out_, " #", event.address.value());
    } else if (!event.address.is_null()) {
      Hex(event.address.value());
    }
    if (event.kind == EventKind::kMark) {
      const uint64_t kind = event.size.value();
      StrAppend(&out_, " kind=");
      if (kind < std::size(kMarkKindNames)) {
        out_ += kMarkKindNames[kind];
      } else {
        StrAppend(&out_, kind);
      }
    } else if (event.kind == EventKind::kFailNext) {
      StrAppend(&out_, " count=", event.size.value());
    } else if (event.size != Bytes()) {
      StrAppend(&out_, " size=", event.size.value());
    }
    if (event.block_size != Bytes()) StrAppend(&out_, " block=", event.block_size.value());
    if ((NamesStream(event) || event.stream != 0) && event.stream < trace_.streams.size()) {
      StrAppend(&out_, " stream=", trace_.streams[event.stream].value());
    }
    if (event.pool != 0) {
      const PoolId pool = trace_.pools[event.pool];
      StrAppend(&out_, " pool=", pool.first, ",", pool.second);
    }
    if (event.id != kNoAllocation) StrAppend(&out_, " id=", event.id);
    if (HasText(event.kind) && event.text_or_stack != kNoText) {
      Value("text", trace_.strings[event.text_or_stack]);
    }
    if (label != nullptr) {
      if (label->filename != kNoText) Value("tag", trace_.strings[label->filename]);
      if (label->name != kNoText) Value("name", trace_.strings[label->name]);
    } else {
      StackValue(stack);
    }
    if (!device.time_us.empty()) StrAppend(&out_, " time=", device.time_us[index]);
    out_ += "\n";
  }

  void WriteSegment(const SegmentInfo& segment) {
    DefineStack(segment.stack);
    for (const BlockInfo& block : segment.blocks) DefineStack(block.stack);
    out_ += "segment";
    Hex(segment.address.value());
    StrAppend(&out_, " size=", segment.total_size.value(), " stream=", segment.stream.value(),
              " pool=", segment.pool_id.first, ",", segment.pool_id.second,
              segment.is_large ? " large" : " small", segment.is_expandable ? " expandable" : "");
    StackValue(segment.stack);
    out_ += "\n";
    for (const BlockInfo& block : segment.blocks) {
      out_ += "block";
      Hex(block.address.value());
      StrAppend(&out_, " size=", block.size.value(), " requested=", block.requested_size.value(),
                " state=", BlockStateName(block.state));
      if (block.id != kNoAllocation) StrAppend(&out_, " id=", block.id);
      StackValue(block.stack);
      out_ += "\n";
    }
  }

  void Diagnose(DiagnosticKind kind) {
    if (trace_.diagnostics.count(kind) == 0) return;
    StrAppend(&out_, "diagnostic ", DescribeDiagnostic(kind).name,
              " count=", trace_.diagnostics.count(kind));
    for (const Diagnostics::Place& place : trace_.diagnostics.places(kind)) {
      StrAppend(&out_, " at=", place.position);
      Value("detail", place.detail);
    }
    out_ += "\n";
  }

  const Trace& trace_;
  BufferedOutput output_;
  std::string& out_;
  // Numbers in the file by index in the tables; 0: not defined yet.
  std::vector<uint32_t> frame_numbers_;
  std::vector<uint32_t> stack_numbers_;
  uint32_t frames_ = 0;
  uint32_t stacks_ = 0;
};

}  // namespace

absl::Status WriteText(const Trace& trace, ByteSink& sink) {
  return TextWriter(trace, sink).Write();
}

}  // namespace memreplay

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "proto/trace.pb.h"
#include "trace/formats/protobuf/protobuf_format.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"
#include "trace/value/trace_builder.h"

namespace memreplay {
namespace {

constexpr size_t kPerRecord = 4096;  // events, blocks, frames
constexpr size_t kTextBytesPerRecord = 1 << 16;
static_assert(file::NoteKind_MAX == static_cast<int>(kNoteKinds) - 1);

// Returns the number in files of each EventKind; UNKNOWN if the schema lacks one. They are matched
// by name, so that these numbers do not change when EventKind gets a new member.
std::vector<file::Kind> FileKinds() {
  std::vector<file::Kind> kinds;
  for (const std::string_view name : kEventKindNames) {
    file::Kind_Parse(absl::AsciiStrToUpper(ToAbsl(name)), &kinds.emplace_back(file::UNKNOWN));
  }
  return kinds;
}

class ProtobufWriter {
 public:
  ProtobufWriter(const Trace& trace, ByteSink& sink) : trace_(trace), output_(sink) {}

  absl::Status Write() {
    RETURN_IF_ERROR(CheckTrace(trace_));
    output_.text().append(kProtobufMagic);
    for (int i = 0; i < 4; ++i) {
      output_.text().push_back(static_cast<char>(kProtobufVersion >> (8 * i)));
    }
    Header();
    Texts();
    Frames();
    Stacks();
    for (const DeviceTrace& device : trace_.devices) Device(device);
    for (const Annotation& annotation : trace_.annotations) {
      file::Record record;
      file::Annotation& to = *record.mutable_annotation();
      to.set_name(annotation.name);
      to.set_stage(annotation.stage);
      to.set_device(annotation.device);
      to.set_time_us(annotation.time_us);
      Put(record);
    }
    Diagnose();
    file::Record record;
    record.mutable_end()->set_events(events_);
    Put(record);
    return output_.Finish();
  }

 private:
  void Put(const file::Record& record) {
    const size_t size = record.ByteSizeLong();
    if (size > kMaxRecordBytes) {
      output_.Fail(absl::FailedPreconditionError(
          StrCat("the trace has a text too long for the format: expected at most ", kMaxRecordBytes,
                 " bytes, found ", size)));
      return;
    }
    std::string& out = output_.text();
    for (size_t rest = size; true; rest >>= 7) {
      if (rest < 0x80) {
        out.push_back(static_cast<char>(rest));
        break;
      }
      out.push_back(static_cast<char>(0x80 | (rest & 0x7f)));
    }
    record.AppendToString(&out);
    output_.MaybeFlush();
  }

  void Header() {
    file::Record record;
    file::Header& header = *record.mutable_header();
    header.set_is_program(trace_.is_program);
    for (const StreamHandle stream : trace_.streams) header.add_streams(stream.value());
    for (size_t i = 1; i < trace_.pools.size(); ++i) {
      header.add_pool_first(trace_.pools[i].first);
      header.add_pool_second(trace_.pools[i].second);
    }
    for (const LayoutField& field : kLayoutFields) {
      if (trace_.layout.*field.field) header.add_layout(std::string(field.name));
    }
    header.set_pickle_protocol(static_cast<uint32_t>(trace_.layout.pickle_protocol));
    if (trace_.settings) {
      const RecordedSettings& from = *trace_.settings;
      file::Settings& to = *header.mutable_settings();
      to.set_conf(from.conf);
      if (from.max_split_size) to.set_max_split_size(*from.max_split_size);
      if (from.garbage_collection_threshold) {
        to.set_garbage_collection_threshold(*from.garbage_collection_threshold);
      }
      if (from.expandable_segments) to.set_expandable_segments(*from.expandable_segments);
      if (from.graph_capture_record_stream_reuse) {
        to.set_graph_capture_record_stream_reuse(*from.graph_capture_record_stream_reuse);
      }
      for (const auto& [size, divisions] : from.roundup_power2_divisions) {
        to.add_roundup_size_mb(size);
        to.add_roundup_divisions(divisions);
      }
    }
    if (trace_.total_memory) header.set_total_memory(trace_.total_memory->value());
    if (trace_.memory_fraction) header.set_memory_fraction(*trace_.memory_fraction);
    header.set_explicit_completion(trace_.completion == Completion::kExplicit);
    header.set_program_header(trace_.program_header);
    header.set_torch_version(trace_.torch_version);
    header.set_ended(trace_.ended);
    Put(record);
  }

  void Texts() {
    file::Record record;
    size_t bytes = 0;
    for (size_t i = 1; i < trace_.strings.size(); ++i) {
      const std::string_view text = trace_.strings[static_cast<uint32_t>(i)];
      if (bytes > 0 && bytes + text.size() > kTextBytesPerRecord) {
        Put(record);
        record.Clear();
        bytes = 0;
      }
      record.mutable_texts()->add_text(std::string(text));
      bytes += text.size() + 4;
    }
    if (bytes > 0) Put(record);
  }

  void Frames() {
    for (size_t begin = 0; begin < trace_.stacks.frame_count(); begin += kPerRecord) {
      file::Record record;
      const size_t end = std::min(begin + kPerRecord, trace_.stacks.frame_count());
      for (size_t i = begin; i < end; ++i) {
        const Frame& frame = trace_.stacks.frame(static_cast<uint32_t>(i));
        record.mutable_frames()->add_filename(frame.filename);
        record.mutable_frames()->add_name(frame.name);
        record.mutable_frames()->add_line(frame.line);
      }
      Put(record);
    }
  }

  void Stacks() {
    file::Record record;
    size_t entries = 0;
    for (size_t i = 1; i < trace_.stacks.size(); ++i) {
      const absl::Span<const uint32_t> stack = trace_.stacks[static_cast<uint32_t>(i)];
      record.mutable_stacks()->add_depth(static_cast<uint32_t>(stack.size()));
      for (const uint32_t frame : stack) record.mutable_stacks()->add_frame(frame);
      entries += 1 + stack.size();
      if (entries >= kPerRecord) {
        Put(record);
        record.Clear();
        entries = 0;
      }
    }
    if (entries > 0) Put(record);
  }

  void Device(const DeviceTrace& device) {
    file::Record record;
    record.mutable_device()->set_device(static_cast<uint32_t>(device.device));
    record.mutable_device()->set_has_times(!device.time_us.empty());
    record.mutable_device()->set_has_final_state(device.has_final_state);
    Put(record);
    for (size_t begin = 0; begin < device.events.size(); begin += kPerRecord) {
      record.Clear();
      Events(device, begin, std::min(begin + kPerRecord, device.events.size()),
             record.mutable_events());
      Put(record);
    }
    for (size_t begin = 0; begin < device.notes.size(); begin += kPerRecord) {
      record.Clear();
      file::Notes& notes = *record.mutable_notes();
      const size_t end = std::min(begin + kPerRecord, device.notes.size());
      for (size_t i = begin; i < end; ++i) {
        const MemoryNote& note = device.notes[i];
        notes.add_kind(static_cast<file::NoteKind>(note.kind));
        notes.add_event(note.event);
        notes.add_name(note.name);
        notes.add_address(note.address.value());
      }
      Put(record);
    }
    for (const SegmentInfo& segment : device.final_state) Segment(segment);
  }

  void Events(const DeviceTrace& device, size_t begin, size_t end, file::Events* to) {
    events_ += end - begin;
    // Fills a column unless all its values are zero.
    const auto column = [&](auto* values, auto value) {
      bool any = false;
      for (size_t i = 0; i < end - begin && !any; ++i) any = value(i) != 0;
      for (size_t i = 0; i < end - begin && any; ++i) values->Add(value(i));
    };
    // The difference from the value before, which fits into 64 bits if it wraps around.
    const auto change = [](uint64_t value, uint64_t before) {
      return static_cast<int64_t>(value - before);
    };
    std::vector<Event> events;  // a copy, since each column reads the events again
    events.reserve(end - begin);
    for (size_t i = begin; i < end; ++i) events.push_back(device.events[i]);
    for (const Event& event : events) to->add_kind(kinds_[static_cast<size_t>(event.kind)]);
    column(to->mutable_pool(), [&](size_t i) { return uint32_t{events[i].pool}; });
    column(to->mutable_id_plus_1(), [&](size_t i) { return events[i].id + 1; });
    column(to->mutable_address_change(), [&](size_t i) {
      return change(events[i].address.value(), i == 0 ? 0 : events[i - 1].address.value());
    });
    column(to->mutable_size(), [&](size_t i) { return events[i].size.value(); });
    column(to->mutable_block_size(), [&](size_t i) { return events[i].block_size.value(); });
    column(to->mutable_stream(), [&](size_t i) { return events[i].stream; });
    column(to->mutable_text_or_stack(), [&](size_t i) { return events[i].text_or_stack; });
    if (device.time_us.empty()) return;
    column(to->mutable_time_change(), [&](size_t i) {
      const int64_t* const times = device.time_us.data() + begin;
      return change(static_cast<uint64_t>(times[i]),
                    i == 0 ? 0 : static_cast<uint64_t>(times[i - 1]));
    });
  }

  void Segment(const SegmentInfo& segment) {
    file::Record record;
    file::Segment& to = *record.mutable_segment();
    to.set_address(segment.address.value());
    to.set_total_size(segment.total_size.value());
    to.set_stream(segment.stream.value());
    to.set_pool_first(segment.pool_id.first);
    to.set_pool_second(segment.pool_id.second);
    to.set_is_large(segment.is_large);
    to.set_is_expandable(segment.is_expandable);
    to.set_stack(segment.stack);
    Put(record);
    for (size_t begin = 0; begin < segment.blocks.size(); begin += kPerRecord) {
      record.Clear();
      file::Blocks& blocks = *record.mutable_blocks();
      uint64_t before = 0;
      const size_t end = std::min(begin + kPerRecord, segment.blocks.size());
      for (size_t i = begin; i < end; ++i) {
        const BlockInfo& block = segment.blocks[i];
        blocks.add_size(block.size.value());
        blocks.add_address_change(static_cast<int64_t>(block.address.value() - before));
        before = block.address.value();
        blocks.add_requested_size(block.requested_size.value());
        blocks.add_state(static_cast<uint32_t>(block.state));
        blocks.add_id_plus_1(block.id + 1);
        blocks.add_stack(block.stack);
      }
      Put(record);
    }
  }

  void Diagnose() {
    for (int i = 0; i < static_cast<int>(DiagnosticKind::kCount); ++i) {
      const auto kind = static_cast<DiagnosticKind>(i);
      if (trace_.diagnostics.count(kind) == 0) continue;
      file::Record record;
      file::Diagnostic& to = *record.mutable_diagnostic();
      to.set_name(std::string(DescribeDiagnostic(kind).name));
      to.set_count(trace_.diagnostics.count(kind));
      for (const Diagnostics::Place& place : trace_.diagnostics.places(kind)) {
        to.add_position(place.position);
        to.add_detail(place.detail);
      }
      Put(record);
    }
  }

  const Trace& trace_;
  BufferedOutput output_;
  uint64_t events_ = 0;
  const std::vector<file::Kind> kinds_ = FileKinds();  // by EventKind
};

}  // namespace

absl::Status WriteProtobufTrace(const Trace& trace, ByteSink& sink) {
  return ProtobufWriter(trace, sink).Write();
}

}  // namespace memreplay

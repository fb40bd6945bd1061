#include <algorithm>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "trace/bytes/pickle_writer.h"
#include "trace/formats/torch/torch_snapshot.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"
#include "trace/value/trace_builder.h"

namespace memreplay {
namespace {

constexpr int kLastDevice = 1023;
constexpr uint32_t kNotYet = 0xffffffff;

class SnapshotWriter {
 public:
  SnapshotWriter(const Trace& trace, ByteSink& sink)
      : trace_(trace),
        output_(sink),
        pickle_(output_.text()),
        layout_(trace.layout),
        frames_(trace.stacks.frame_count(), kNotYet),
        stacks_(trace.stacks.size(), kNotYet) {
    if (!layout_.has_device_traces && layout_.pickle_protocol == 0) {
      // A trace that no snapshot was read from gets the layout of 2.11.
      for (const LayoutField& field : kLayoutFields) layout_.*field.field = true;
      layout_.has_event_pool_id = false;
    }
  }

  absl::Status Write(std::vector<std::string>* losses) {
    RETURN_IF_ERROR(CheckTrace(trace_));
    if (trace_.is_program) {
      return absl::FailedPreconditionError(
          "a schedule cannot be written as a snapshot: expected addresses, found handles (write "
          "the result of its replay instead)");
    }
    if (!trace_.devices.empty() && trace_.devices.back().device > kLastDevice) {
      return absl::FailedPreconditionError(
          StrCat("the trace cannot be written as a snapshot: expected devices up to ", kLastDevice,
                 ", found ", trace_.devices.back().device));
    }
    pickle_.Start();
    pickle_.BeginDict();
    Key("segments");
    Segments();
    Key("device_traces");
    Traces();
    if (trace_.settings) {
      Key("allocator_settings");
      Settings(*trace_.settings);
    }
    if (!trace_.torch_version.empty()) Text("torch_version", trace_.torch_version);
    if (!trace_.ended.empty()) Text("memreplay_ended", trace_.ended);
    if (trace_.addresses_ascend.has_value() ||
        absl::c_any_of(trace_.devices,
                       [](const DeviceTrace& device) { return !device.notes.empty(); })) {
      Key("memreplay");
      Notes();
    }
    if (layout_.has_external_annotations || !trace_.annotations.empty()) {
      Key("external_annotations");
      Annotations();
    }
    pickle_.End();
    pickle_.Stop();
    if (losses != nullptr) ReportLosses(losses);
    return output_.Finish();
  }

 private:
  void Key(std::string_view key) {
    pickle_.Item();
    pickle_.Text(key);
  }
  void Number(std::string_view key, uint64_t value) {
    Key(key);
    pickle_.Unsigned(value);
  }
  void Integer(std::string_view key, int64_t value) {
    Key(key);
    pickle_.Integer(value);
  }
  void Text(std::string_view key, std::string_view value) {
    Key(key);
    pickle_.Text(value);
  }
  void Flag(std::string_view key, bool value) {
    Key(key);
    pickle_.Bool(value);
  }
  void Pool(std::string_view key, PoolId pool) {
    Key(key);
    pickle_.Pair(pool.first, pool.second);
  }

  void Stack(uint32_t stack) {
    if (stacks_[stack] != kNotYet) return pickle_.Get(stacks_[stack]);
    pickle_.BeginList();
    stacks_[stack] = pickle_.Remember();
    for (const uint32_t index : trace_.stacks[stack]) {
      pickle_.Item();
      if (frames_[index] != kNotYet) {
        pickle_.Get(frames_[index]);
        continue;
      }
      const Frame& frame = trace_.stacks.frame(index);
      pickle_.BeginDict();
      frames_[index] = pickle_.Remember();
      Text("name", trace_.strings[frame.name]);
      Text("filename", trace_.strings[frame.filename]);
      Number("line", frame.line);
      pickle_.End();
    }
    pickle_.End();
  }

  void Segments() {
    pickle_.BeginList();
    for (const DeviceTrace& device : trace_.devices) {
      for (const SegmentInfo& segment : device.final_state) {
        pickle_.Item();
        Segment(device.device, segment);
        output_.MaybeFlush();
      }
    }
    pickle_.End();
  }

  void Segment(int device, const SegmentInfo& segment) {
    Bytes allocated;
    Bytes active;
    Bytes requested;
    for (const BlockInfo& block : segment.blocks) {
      if (block.state == BlockState::kInactive) continue;
      active += block.size;
      requested += block.requested_size;
      if (block.state == BlockState::kAllocated) allocated += block.size;
    }
    pickle_.BeginDict();
    Number("device", static_cast<uint64_t>(device));
    Number("address", segment.address.value());
    Number("total_size", segment.total_size.value());
    Number("allocated_size", allocated.value());
    Number("active_size", active.value());
    Number("requested_size", requested.value());
    Number("stream", segment.stream.value());
    Text("segment_type", segment.is_large ? "large" : "small");
    Pool("segment_pool_id", segment.pool_id);
    if (layout_.has_is_expandable || segment.is_expandable)
      Flag("is_expandable", segment.is_expandable);
    if (segment.stack == kNoStack) {
      Key("frames");
      Stack(kNoStack);
    }
    Key("blocks");
    pickle_.BeginList();
    for (const BlockInfo& block : segment.blocks) {
      pickle_.Item();
      pickle_.BeginDict();
      Number("address", block.address.value());
      Number("size", block.size.value());
      Number("requested_size", block.requested_size.value());
      Text("state", BlockStateName(block.state));
      Key("frames");
      Stack(block.stack);
      pickle_.End();
      if (block.id != kNoAllocation) ++lost_ids_;
    }
    pickle_.End();
    if (segment.stack != kNoStack) {
      Key("frames");
      Stack(segment.stack);
    }
    pickle_.End();
  }

  void Traces() {
    pickle_.BeginList();
    int next = 0;
    for (const DeviceTrace& device : trace_.devices) {
      for (; next < device.device; ++next) {
        pickle_.Item();
        pickle_.BeginList();
        pickle_.End();
      }
      ++next;
      pickle_.Item();
      pickle_.BeginList();
      for (size_t i = 0; i < device.events.size(); ++i) {
        if (IsTraced(device.events[i].kind)) {
          pickle_.Item();
          Entry(device, i);
          output_.MaybeFlush();
        } else {
          ++lost_events_[static_cast<size_t>(device.events[i].kind)];
        }
      }
      pickle_.End();
    }
    pickle_.End();
  }

  void Entry(const DeviceTrace& device, size_t index) {
    const Event& event = device.events[index];
    pickle_.BeginDict();
    Text("action", EventKindName(event.kind));
    Number(event.kind == EventKind::kOom ? "device_free" : "addr", event.address.value());
    Number("size", event.size.value());
    Number("stream",
           event.stream < trace_.streams.size() ? trace_.streams[event.stream].value() : 0);
    if (!device.time_us.empty()) Integer("time_us", device.time_us[index]);
    if (layout_.has_compile_context) Text("compile_context", "N/A");
    if (layout_.has_user_metadata) Text("user_metadata", "");
    if (layout_.has_event_pool_id || event.pool != 0) Pool("pool_id", trace_.pools[event.pool]);
    if (event.text_or_stack != kNoStack) {
      Key("frames");
      Stack(event.text_or_stack);
    }
    pickle_.End();
    if (event.id != kNoAllocation) ++lost_ids_;
    if (event.block_size != Bytes()) ++lost_block_sizes_;
  }

  void Settings(const RecordedSettings& settings) {
    pickle_.BeginDict();
    Text("PYTORCH_CUDA_ALLOC_CONF", settings.conf);
    if (settings.max_split_size) Integer("max_split_size", *settings.max_split_size);
    if (settings.garbage_collection_threshold) {
      Key("garbage_collection_threshold");
      pickle_.Float(*settings.garbage_collection_threshold);
    }
    if (settings.expandable_segments) Flag("expandable_segments", *settings.expandable_segments);
    Number("pinned_num_register_threads", 1);
    Flag("release_lock_on_cudamalloc", false);
    Flag("pinned_use_cuda_host_register", false);
    if (settings.graph_capture_record_stream_reuse)
      Flag("graph_capture_record_stream_reuse", *settings.graph_capture_record_stream_reuse);
    Key("roundup_power2_divisions");
    pickle_.BeginDict();
    for (const auto& [size, divisions] : settings.roundup_power2_divisions) {
      Number(StrCat(size), divisions);
    }
    pickle_.End();
    pickle_.End();
  }

  void Annotations() {
    pickle_.BeginList();
    for (const Annotation& annotation : trace_.annotations) {
      pickle_.Item();
      pickle_.BeginDict();
      Text("name", trace_.strings[annotation.name]);
      Text("stage", trace_.strings[annotation.stage]);
      Integer("device", annotation.device);
      Integer("time_us", annotation.time_us);
      pickle_.End();
      output_.MaybeFlush();
    }
    pickle_.End();
  }

  template <typename Elements, typename Put>
  void List(std::string_view key, const Elements& elements, const Put& put) {
    Key(key);
    pickle_.BeginList();
    for (const auto& element : elements) {
      pickle_.Item();
      put(element);
      output_.MaybeFlush();
    }
    pickle_.End();
  }

  // Writes the notes as python/memreplay/_notes.py does, with places counted from the first event.
  void Notes() {
    std::vector<std::string_view> names;
    absl::flat_hash_map<uint32_t, uint64_t> numbers;
    for (const DeviceTrace& device : trace_.devices) {
      for (const MemoryNote& note : device.notes) {
        if (numbers.try_emplace(note.name, names.size()).second) {
          names.push_back(trace_.strings[note.name]);
        }
      }
    }
    pickle_.BeginDict();
    Number("version", 1);
    if (trace_.addresses_ascend.has_value())
      Text("addresses", *trace_.addresses_ascend ? "up" : "down");
    const auto put_text = [this](std::string_view text) { pickle_.Text(text); };
    const auto put_number = [this](uint64_t number) { pickle_.Unsigned(number); };
    List("kinds", kNoteNames, put_text);
    List("names", names, put_text);
    Key("devices");
    pickle_.BeginList();
    for (const DeviceTrace& device : trace_.devices) {
      if (device.notes.empty()) continue;
      std::vector<uint64_t> columns[4];
      uint64_t place = 0, event = 0;
      const auto pass_to = [&](uint64_t to) {
        for (; event < to; ++event) {
          const EventKind kind = device.events[event].kind;
          place += kind == EventKind::kAlloc || kind == EventKind::kFree ? 1 : 0;
        }
      };
      for (const MemoryNote& note : device.notes) {
        pass_to(note.event);
        columns[0].push_back(static_cast<uint64_t>(note.kind));
        columns[1].push_back(place);
        columns[2].push_back(numbers[note.name]);
        columns[3].push_back(note.address.value());
      }
      pass_to(device.events.size());
      pickle_.Item();
      pickle_.BeginDict();
      Number("device", static_cast<uint64_t>(device.device));
      Number("end", place);
      List("kind", columns[0], put_number);
      List("place", columns[1], put_number);
      List("name", columns[2], put_number);
      List("address", columns[3], put_number);
      pickle_.End();
    }
    pickle_.End();
    pickle_.End();
  }

  void ReportLosses(std::vector<std::string>* losses) {
    for (size_t i = 0; i < std::size(lost_events_); ++i) {
      if (lost_events_[i] == 0) continue;
      losses->push_back(StrCat(lost_events_[i], " events \"",
                               EventKindName(static_cast<EventKind>(i)),
                               "\" are left out: a snapshot does not record them"));
    }
    if (lost_ids_ > 0) {
      losses->push_back(StrCat(lost_ids_, " allocation ids are left out: a snapshot has none"));
    }
    if (lost_block_sizes_ > 0) {
      losses->push_back(
          StrCat(lost_block_sizes_, " block sizes of events are left out: a snapshot has none"));
    }
    if (pickle_.replaced_texts() > 0) {
      losses->push_back(StrCat(pickle_.replaced_texts(),
                               " texts are not UTF-8; the bytes at fault became U+FFFD"));
    }
  }

  const Trace& trace_;
  BufferedOutput output_;
  PickleWriter pickle_;
  LayoutFacts layout_;
  std::vector<PickleWriter::Memo> frames_;  // by index; kNotYet: not written yet
  std::vector<PickleWriter::Memo> stacks_;
  uint64_t lost_events_[static_cast<size_t>(EventKind::kSnapshot) + 1] = {};
  uint64_t lost_ids_ = 0;
  uint64_t lost_block_sizes_ = 0;
};

}  // namespace

absl::Status WriteTorchSnapshot(const Trace& trace, ByteSink& sink,
                                std::vector<std::string>* losses) {
  return SnapshotWriter(trace, sink).Write(losses);
}

}  // namespace memreplay

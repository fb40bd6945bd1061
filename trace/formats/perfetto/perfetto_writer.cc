#include "trace/formats/perfetto/perfetto_writer.h"

#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "trace/bytes/json_scanner.h"
#include "trace/value/strings.h"
#include "trace/value/trace_builder.h"

namespace memreplay {
namespace {

// Change of the two series by one event, modulo 2^64.
struct Change {
  uint64_t requested = 0;
  uint64_t reserved = 0;
  bool any = false;
};

class PerfettoWriter {
 public:
  PerfettoWriter(const Trace& trace, ByteSink& sink)
      : trace_(trace), output_(sink), out_(output_.text()) {}

  absl::Status Write() {
    if (absl::Status status = CheckTrace(trace_); !status.ok()) return status;
    out_ += "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
    for (const DeviceTrace& device : trace_.devices) Device(device);
    for (const Annotation& annotation : trace_.annotations) {
      Instant(annotation.device, annotation.time_us,
              StrCat(trace_.strings[annotation.name], " ", trace_.strings[annotation.stage]));
    }
    out_ += "\n]}\n";
    return output_.Finish();
  }

 private:
  void Begin(std::string_view phase, int device, int64_t time) {
    StrAppend(&out_, is_first_ ? "\n" : ",\n", "{\"ph\":\"", phase, "\",\"pid\":", device,
              ",\"tid\":0,\"ts\":", time);
    is_first_ = false;
  }
  void Instant(int device, int64_t time, std::string_view name) {
    Begin("i", device, time);
    out_ += ",\"s\":\"p\",\"name\":";
    AppendJsonString(name, &out_);
    out_ += "}";
    output_.MaybeFlush();
  }

  Change ChangeOf(const Event& event) {
    const uint64_t size = event.size.value();
    switch (event.kind) {
      case EventKind::kAlloc:
        if (trace_.is_program) sizes_[event.address.value()] = size;
        return {size, 0, true};
      case EventKind::kFree: {
        if (!trace_.is_program) return {0 - size, 0, true};
        const auto it = sizes_.find(event.address.value());
        if (it == sizes_.end()) return {};
        const uint64_t freed = it->second;
        sizes_.erase(it);
        return {0 - freed, 0, true};
      }
      case EventKind::kSegmentAlloc:
      case EventKind::kSegmentMap: return {0, size, true};
      case EventKind::kSegmentFree:
      case EventKind::kSegmentUnmap: return {0, 0 - size, true};
      default: return {};
    }
  }

  void Device(const DeviceTrace& device) {
    Begin("M", device.device, 0);
    StrAppend(&out_, ",\"name\":\"process_name\",\"args\":{\"name\":\"device ", device.device,
              "\"}}");
    uint64_t requested = 0;
    uint64_t reserved = 0;
    if (device.has_final_state && !trace_.is_program) {
      for (const SegmentInfo& segment : device.final_state) {
        reserved += segment.total_size.value();
        for (const BlockInfo& block : segment.blocks) {
          if (block.state == BlockState::kAllocated) requested += block.requested_size.value();
        }
      }
      for (const Event& event : device.events) {
        const Change change = ChangeOf(event);
        requested -= change.requested;
        reserved -= change.reserved;
      }
    }
    sizes_.clear();
    for (size_t i = 0; i < device.events.size(); ++i) {
      const Event& event = device.events[i];
      const int64_t time = device.time_us.empty() ? static_cast<int64_t>(i) : device.time_us[i];
      const Change change = ChangeOf(event);
      requested += change.requested;
      reserved += change.reserved;
      if (change.any || i == 0) {
        Begin("C", device.device, time);
        StrAppend(&out_,
                  ",\"name\":\"memory\",\"args\":{\"requested\":", static_cast<int64_t>(requested));
        if (!trace_.is_program) {
          StrAppend(&out_, ",\"reserved\":", static_cast<int64_t>(reserved));
        }
        out_ += "}}";
      }
      if (event.kind == EventKind::kMark) {
        Instant(device.device, time, trace_.strings[event.text_or_stack]);
      } else if (event.kind == EventKind::kOom) {
        Instant(device.device, time,
                StrCat("out of memory: wanted ", event.size.value(), " bytes"));
      }
      output_.MaybeFlush();
    }
    sizes_.clear();
  }

  const Trace& trace_;
  BufferedOutput output_;
  std::string& out_;
  bool is_first_ = true;
  absl::flat_hash_map<uint64_t, uint64_t> sizes_;  // of a program's live handles
};

}  // namespace

absl::Status WritePerfetto(const Trace& trace, ByteSink& sink) {
  return PerfettoWriter(trace, sink).Write();
}

}  // namespace memreplay

#include "report/device/event_log.h"

#include <charconv>
#include <utility>

#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr size_t kFlushAt = 128 * 1024;

}  // namespace

EventLog::EventLog(std::vector<StreamHandle> stream_handles, TextSink sink, int device)
    : stream_handles_(std::move(stream_handles)),
      sink_(std::move(sink)),
      line_end_(device < 0 ? "}\n" : StrCat(",\"device\":", device, "}\n")) {
  buffer_.reserve(kFlushAt + 256);
}

EventLog::~EventLog() { Flush(); }

void EventLog::Append(uint64_t number) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof(digits), number).ptr;
  buffer_.append(digits, end);
}

void EventLog::OnEvent(const Event& event) {
  if (!IsTraced(event.kind)) return;
  Append("{\"action\":\"");
  Append(EventKindName(event.kind));
  Append(event.kind == EventKind::kOom ? "\",\"device_free\":" : "\",\"addr\":");
  Append(event.address.value());
  Append(",\"size\":");
  Append(event.size.value());
  Append(",\"stream\":");
  Append(event.stream < stream_handles_.size() ? stream_handles_[event.stream].value()
                                               : event.stream);
  Append(line_end_);
  if (buffer_.size() >= kFlushAt) Flush();
}

void EventLog::Flush() {
  if (!buffer_.empty()) sink_(buffer_);
  buffer_.clear();
}

}  // namespace memreplay

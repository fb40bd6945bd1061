// Writes events the way PyTorch records them: one JSON object per line with the
// keys action, addr (device_free for oom), size, stream.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/model/observer.h"
#include "trace/value/event.h"
#include "trace/value/units.h"

namespace memreplay {

// Takes the text in pieces of some 100 KiB. The sink keeps its own first error; the log keeps
// writing regardless.
using TextSink = std::function<void(std::string_view)>;

// An observer that writes each event of a run as a line of JSON, with PyTorch's names.
class EventLog final : public Observer {
 public:
  // `stream_handles` maps Event::stream to the printed handle; a stream beyond it prints as its own
  // index. Every line has the key "device" unless `device` is negative; files that hold several
  // devices need it.
  EventLog(std::vector<StreamHandle> stream_handles, TextSink sink, int device = -1);
  ~EventLog() override;
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  // Ignores what PyTorch's trace does not have (marks, settings, empty_cache, record_stream ...).
  // O(1), without allocations once the buffer has grown.
  void OnEvent(const Event& event) override;

  // Hands over what is buffered. The destructor calls it too.
  void Flush();

 private:
  void Append(std::string_view text) { buffer_.append(text); }
  void Append(uint64_t number);

  const std::vector<StreamHandle> stream_handles_;
  const TextSink sink_;
  const std::string line_end_;  // after the stream's number
  std::string buffer_;
};

}  // namespace memreplay

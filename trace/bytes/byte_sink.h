// Where written files go: something that takes bytes in order.
#ifndef MEMREPLAY_TRACE_BYTES_BYTE_SINK_H_
#define MEMREPLAY_TRACE_BYTES_BYTE_SINK_H_

#include <ostream>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace memreplay {

// A place that takes bytes, piece by piece.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  // Takes all of `bytes` or fails.
  virtual absl::Status Append(std::string_view bytes) = 0;
};

// Keeps the bytes in a string.
class StringSink : public ByteSink {
 public:
  absl::Status Append(std::string_view bytes) override;
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Fails with DataLoss when the stream does. Does not own the stream.
class OstreamSink : public ByteSink {
 public:
  explicit OstreamSink(std::ostream& out) : out_(out) {}
  absl::Status Append(std::string_view bytes) override;

 private:
  std::ostream& out_;
};

// Collects small pieces and hands them on in large ones, so that a writer needs
// bounded memory. The first failure sticks and is told by Finish().
class BufferedOutput {
 public:
  explicit BufferedOutput(ByteSink& sink) : sink_(sink) {}

  // Append to this; call Flush() or MaybeFlush() between records.
  std::string& text() { return text_; }
  void MaybeFlush() {
    if (text_.size() >= kFlushAt) Flush();
  }
  void Flush();
  void Fail(const absl::Status& status) { status_.Update(status); }
  absl::Status Finish();

 private:
  static constexpr size_t kFlushAt = 1 << 16;
  ByteSink& sink_;
  std::string text_;
  absl::Status status_;
};

}  // namespace memreplay

#endif  // MEMREPLAY_TRACE_BYTES_BYTE_SINK_H_

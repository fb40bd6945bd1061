// Destinations of written bytes.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace memreplay {

// A destination that takes bytes in order, piece by piece.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  // Takes all of `bytes` or fails.
  virtual absl::Status Append(std::string_view bytes) = 0;
};

// A sink that keeps the bytes in a string.
class StringSink : public ByteSink {
 public:
  absl::Status Append(std::string_view bytes) override {
    text_.append(bytes);
    return absl::OkStatus();
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// A buffer that collects small pieces and passes them on in large ones, so that a writer needs
// bounded memory. After a failure it discards all output; Finish() returns the first failure.
class BufferedOutput {
 public:
  explicit BufferedOutput(ByteSink& sink) : sink_(sink) {}

  // Returns the buffer to append to; call Flush() or MaybeFlush() between records.
  std::string& text() { return text_; }
  void MaybeFlush() {
    if (text_.size() >= kFlushAt) Flush();
  }
  void Flush() {
    if (status_.ok()) status_ = sink_.Append(text_);
    text_.clear();
  }
  void Fail(const absl::Status& status) { status_.Update(status); }
  absl::Status Finish() {
    Flush();
    return status_;
  }

 private:
  static constexpr size_t kFlushAt = 1 << 16;
  ByteSink& sink_;
  std::string text_;
  absl::Status status_;
};

}  // namespace memreplay

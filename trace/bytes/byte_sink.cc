#include "trace/bytes/byte_sink.h"

namespace memreplay {

absl::Status StringSink::Append(std::string_view bytes) {
  text_.append(bytes);
  return absl::OkStatus();
}

absl::Status OstreamSink::Append(std::string_view bytes) {
  out_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!out_) return absl::DataLossError("the output could not be written");
  return absl::OkStatus();
}

void BufferedOutput::Flush() {
  if (status_.ok()) status_ = sink_.Append(text_);
  text_.clear();
}

absl::Status BufferedOutput::Finish() {
  Flush();
  return status_;
}

}  // namespace memreplay

#include "trace/bytes/byte_source.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "trace/bytes/raw_input.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr size_t kFirstBuffer = 256 << 10;
constexpr std::string_view kGzipMagic("\x1f\x8b", 2);
constexpr std::string_view kZstdMagic("\x28\xb5\x2f\xfd", 4);

}  // namespace

ByteSource::ByteSource(std::unique_ptr<internal::RawInput> raw, const Limits& limits)
    : raw_(std::move(raw)), limits_(limits) {}
ByteSource::~ByteSource() = default;

absl::StatusOr<std::unique_ptr<ByteSource>> ByteSource::Open(const std::string& path,
                                                             const Limits& limits) {
  ASSIGN_OR_RETURN(std::unique_ptr<internal::RawInput> raw, internal::RawInput::Open(path));
  absl::StatusOr<std::unique_ptr<ByteSource>> source = Start(std::move(raw), limits);
  if (source.ok()) return source;
  return Within(path, source.status());
}

absl::StatusOr<std::unique_ptr<ByteSource>> ByteSource::FromBytes(std::string bytes,
                                                                  const Limits& limits) {
  return Start(internal::RawInput::FromBytes(std::move(bytes)), limits);
}

absl::StatusOr<std::unique_ptr<ByteSource>> ByteSource::Start(
    std::unique_ptr<internal::RawInput> raw, const Limits& limits) {
  std::unique_ptr<ByteSource> source(new ByteSource(std::move(raw), limits));
  ASSIGN_OR_RETURN(const std::string_view head, source->raw_->Peek());
  if (head.empty()) return absl::InvalidArgumentError("is empty");
  if (head.starts_with(kGzipMagic)) {
    source->encoding_ = Encoding::kGzip;
    source->decoder_ = internal::NewGzipDecoder();
  } else if (head.starts_with(kZstdMagic)) {
    source->encoding_ = Encoding::kZstd;
    source->decoder_ = internal::NewZstdDecoder();
  } else if (source->raw_->is_whole()) {
    if (head.size() > limits.max_bytes) {
      return absl::ResourceExhaustedError(
          StrCat("has ", head.size(), " bytes; at most ", limits.max_bytes, " are accepted"));
    }
    source->begin_ = head.data();
    source->end_ = head.data() + head.size();
    source->loaded_ = head.size();
    source->ended_ = true;
  }
  return source;
}

void ByteSource::Drop(std::string_view bytes) const { raw_->Drop(bytes); }

void ByteSource::Fail(absl::Status status) {
  status_ = std::move(status);
  ended_ = true;
}

void ByteSource::Fill(size_t n) {
  while (static_cast<size_t>(end_ - begin_) < n && !ended_) {
    const auto unread = static_cast<size_t>(end_ - begin_);
    // Uses a buffer of twice the unread bytes, so that a long element is copied O(1) times per byte
    // and memory is proportional to the data.
    const size_t wanted = std::max(kFirstBuffer, 2 * unread);
    if (capacity_ < wanted) {
      std::unique_ptr<char[]> grown(new char[wanted]);
      if (unread > 0) std::memcpy(grown.get(), begin_, unread);
      buffer_ = std::move(grown);
      capacity_ = wanted;
    } else if (unread > 0) {
      std::memmove(buffer_.get(), begin_, unread);
    }
    begin_ = buffer_.get();
    end_ = begin_ + unread;
    char* const out = buffer_.get() + unread;
    const size_t room = capacity_ - unread;
    size_t got = 0;
    if (decoder_ != nullptr) {
      const absl::StatusOr<size_t> decoded = decoder_->Decode(*raw_, out, room);
      if (!decoded.ok()) return Fail(decoded.status());
      got = *decoded;
    } else {
      const absl::StatusOr<std::string_view> chunk = raw_->Peek();
      if (!chunk.ok()) return Fail(chunk.status());
      got = std::min(room, chunk->size());
      std::memcpy(out, chunk->data(), got);
      raw_->Skip(got);
    }
    if (got == 0) ended_ = true;
    end_ += got;
    loaded_ += got;
    if (loaded_ > limits_.max_bytes) {
      return Fail(absl::ResourceExhaustedError(
          StrCat("has more than ", limits_.max_bytes, " bytes, the limit")));
    }
    if (decoder_ != nullptr && loaded_ > limits_.free_bytes &&
        loaded_ / limits_.max_ratio > raw_->position()) {
      return Fail(absl::ResourceExhaustedError(
          StrCat("is a decompression bomb: ", raw_->position(), " compressed bytes gave ", loaded_,
                 "; at most ", limits_.max_ratio, " to 1 is accepted")));
    }
  }
}

bool ByteSource::ReadLine(std::string_view* line, size_t max_length) {
  size_t searched = 0;
  for (;;) {
    const std::string_view unread = Peek(searched + 1);
    const size_t newline = unread.find('\n', searched);
    if (newline != std::string_view::npos && newline <= max_length) {
      *line = unread.substr(0, newline);
      Skip(newline + 1);
      break;
    }
    if (std::min(newline, unread.size()) > max_length) {
      Fail(absl::InvalidArgumentError(
          StrCat("byte ", position(), ": a line is longer than ", max_length, " bytes")));
      return false;
    }
    if (unread.size() == searched) {  // the input has ended
      if (!status_.ok() || unread.empty()) return false;
      *line = unread;
      Skip(unread.size());
      break;
    }
    searched = unread.size();
  }
  if (!line->empty() && line->back() == '\r') line->remove_suffix(1);
  return true;
}

}  // namespace memreplay

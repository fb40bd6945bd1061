#include "trace/bytes/pickle_writer.h"

#include <cstring>

#include "trace/value/strings.h"
#include "trace/value/utf8.h"

namespace memreplay {
namespace {

constexpr uint32_t kBatch = 1000;

}  // namespace

void PickleWriter::Little(uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out_.push_back(static_cast<char>(value >> (8 * i)));
}

void PickleWriter::Start() { out_ += "\x80\x04"; }
void PickleWriter::Stop() { out_ += '.'; }

void PickleWriter::Unsigned(uint64_t value) {
  if (value < 0x100) {
    out_ += 'K';
    Little(value, 1);
  } else if (value < 0x10000) {
    out_ += 'M';
    Little(value, 2);
  } else if (value < 0x80000000) {
    out_ += 'J';
    Little(value, 4);
  } else {
    // LONG1 is two's complement and needs one more byte if the top bit would be the sign.
    int bytes = 4;
    while (bytes < 8 && (value >> (8 * bytes - 1)) != 0) ++bytes;
    const bool needs_sign = bytes == 8 && (value >> 63) != 0;
    out_ += '\x8a';
    Little(static_cast<uint64_t>(bytes) + needs_sign, 1);
    Little(value, bytes);
    if (needs_sign) Little(0, 1);
  }
}

void PickleWriter::Integer(int64_t value) {
  if (value >= 0) return Unsigned(static_cast<uint64_t>(value));
  if (value >= INT32_MIN) {
    out_ += 'J';
    Little(static_cast<uint64_t>(value), 4);
  } else {
    out_ += "\x8a\x08";
    Little(static_cast<uint64_t>(value), 8);
  }
}

void PickleWriter::Float(double value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  out_ += 'G';
  for (int i = 7; i >= 0; --i) out_.push_back(static_cast<char>(bits >> (8 * i)));
}

void PickleWriter::Bool(bool value) { out_ += value ? '\x88' : '\x89'; }

void PickleWriter::Text(std::string_view text) {
  // Keys and stacks repeat, so most texts are already written.
  if (const auto known = texts_.find(ToAbsl(text)); known != texts_.end()) {
    return Get(known->second);
  }
  std::string utf8 = ReplaceBadUtf8(text, "\xef\xbf\xbd", /*surrogates_too=*/true);
  if (utf8 != text) ++replaced_texts_;
  const auto [it, inserted] = texts_.try_emplace(std::move(utf8), memos_);
  if (!inserted) return Get(it->second);
  const std::string& written = it->first;
  if (written.size() < 0x100) {
    out_ += '\x8c';
    Little(written.size(), 1);
  } else if (written.size() < 0x100000000) {
    out_ += 'X';
    Little(written.size(), 4);
  } else {
    out_ += '\x8d';
    Little(written.size(), 8);
  }
  out_ += written;
  Remember();
}

void PickleWriter::Pair(uint64_t first, uint64_t second) {
  Unsigned(first);
  Unsigned(second);
  out_ += '\x86';
}

void PickleWriter::BeginList() {
  out_ += ']';
  open_.push_back({false, 0});
}

void PickleWriter::BeginDict() {
  out_ += '}';
  open_.push_back({true, 0});
}

void PickleWriter::CloseBatch(const Open& open) {
  if (open.items > 0) out_ += open.is_dict ? 'u' : 'e';
}

void PickleWriter::Item() {
  Open& open = open_.back();
  if (open.items == kBatch) {
    CloseBatch(open);
    open.items = 0;
  }
  if (open.items++ == 0) out_ += '(';
}

void PickleWriter::End() {
  CloseBatch(open_.back());
  open_.pop_back();
}

PickleWriter::Memo PickleWriter::Remember() {
  out_ += '\x94';
  return memos_++;
}

void PickleWriter::Get(Memo memo) {
  if (memo < 0x100) {
    out_ += 'h';
    Little(memo, 1);
  } else {
    out_ += 'j';
    Little(memo, 4);
  }
}

}  // namespace memreplay

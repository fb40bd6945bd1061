#include "trace/value/tables.h"

#include <algorithm>

#include "absl/hash/hash.h"

namespace memreplay {

StringTable::StringTable() { Intern(""); }

uint32_t StringTable::Intern(std::string_view text) {
  if (auto it = index_.find(text); it != index_.end()) return it->second;
  const auto index = static_cast<uint32_t>(strings_.size());
  strings_.emplace_back(text);
  index_.emplace(strings_.back(), index);
  return index;
}

StackTable::StackTable() {
  offsets_.push_back(0);
  InternStack({});
}

uint32_t StackTable::InternFrame(const Frame& frame) {
  const auto [it, inserted] =
      frame_index_.try_emplace(frame, static_cast<uint32_t>(frames_.size()));
  if (inserted) frames_.push_back(frame);
  return it->second;
}

uint32_t StackTable::InternStack(absl::Span<const uint32_t> frames) {
  constexpr uint32_t kEnd = 0xffffffff;
  const uint64_t hash = absl::HashOf(frames);
  const auto added = static_cast<uint32_t>(size());
  auto [it, inserted] = first_with_hash_.try_emplace(hash, added);
  if (!inserted) {
    for (uint32_t stack = it->second; stack != kEnd; stack = next_with_hash_[stack]) {
      const absl::Span<const uint32_t> known = (*this)[stack];
      if (std::equal(known.begin(), known.end(), frames.begin(), frames.end())) return stack;
    }
  }
  next_with_hash_.push_back(inserted ? kEnd : it->second);
  it->second = added;
  frame_lists_.insert(frame_lists_.end(), frames.begin(), frames.end());
  offsets_.push_back(frame_lists_.size());
  return added;
}

}  // namespace memreplay

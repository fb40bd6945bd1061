#include "trace/value/tables.h"

#include <algorithm>

#include "absl/hash/hash.h"

namespace memreplay {
namespace {

constexpr uint32_t kEndOfChain = 0xffffffff;

}  // namespace

StringTable::StringTable() { Intern(""); }

uint32_t StringTable::Intern(std::string_view text) {
  if (const std::optional<uint32_t> known = Find(text)) return *known;
  const auto index = static_cast<uint32_t>(strings_.size());
  strings_.emplace_back(text);
  index_.emplace(strings_.back(), index);
  return index;
}

std::optional<uint32_t> StringTable::Find(std::string_view text) const {
  const auto it = index_.find(text);
  return it == index_.end() ? std::nullopt : std::optional(it->second);
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
  if (const std::optional<uint32_t> known = FindStack(frames)) return *known;
  const auto added = static_cast<uint32_t>(size());
  const auto [it, inserted] = first_with_hash_.try_emplace(absl::HashOf(frames), added);
  next_with_hash_.push_back(inserted ? kEndOfChain : it->second);
  it->second = added;
  frame_lists_.insert(frame_lists_.end(), frames.begin(), frames.end());
  offsets_.push_back(frame_lists_.size());
  return added;
}

std::optional<uint32_t> StackTable::FindFrame(const Frame& frame) const {
  const auto it = frame_index_.find(frame);
  return it == frame_index_.end() ? std::nullopt : std::optional(it->second);
}

std::optional<uint32_t> StackTable::FindStack(absl::Span<const uint32_t> frames) const {
  const auto it = first_with_hash_.find(absl::HashOf(frames));
  if (it == first_with_hash_.end()) return std::nullopt;
  for (uint32_t stack = it->second; stack != kEndOfChain; stack = next_with_hash_[stack]) {
    const absl::Span<const uint32_t> known = (*this)[stack];
    if (std::equal(known.begin(), known.end(), frames.begin(), frames.end())) return stack;
  }
  return std::nullopt;
}

}  // namespace memreplay

// Interned strings, frames and stacks: each distinct one is stored once and has a small index.
// Index 0 is the empty string or the empty stack.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"

namespace memreplay {

// Strings, each stored once and identified by an index.
class StringTable {
 public:
  StringTable();
  StringTable(StringTable&&) = default;
  StringTable& operator=(StringTable&&) = default;

  uint32_t Intern(std::string_view text);  // O(length)
  std::optional<uint32_t> Find(std::string_view text) const;
  std::string_view operator[](uint32_t index) const { return strings_[index]; }
  size_t size() const { return strings_.size(); }

 private:
  std::deque<std::string> strings_;  // deque: the views in index_ stay valid
  absl::flat_hash_map<std::string_view, uint32_t> index_;
};

// One Python, TorchScript or C++ frame. Texts are StringTable indexes.
struct Frame {
  uint32_t filename = 0;
  uint32_t name = 0;
  uint32_t line = 0;
  friend bool operator==(const Frame&, const Frame&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Frame& f) {
    return H::combine(std::move(h), f.filename, f.name, f.line);
  }
};

// Frames and stacks of frames. A stack starts with its innermost frame, as in PyTorch's files.
class StackTable {
 public:
  StackTable();
  StackTable(StackTable&&) = default;
  StackTable& operator=(StackTable&&) = default;

  uint32_t InternFrame(const Frame& frame);                 // O(1)
  uint32_t InternStack(absl::Span<const uint32_t> frames);  // O(frames); frame indexes
  std::optional<uint32_t> FindFrame(const Frame& frame) const;
  std::optional<uint32_t> FindStack(absl::Span<const uint32_t> frames) const;

  const Frame& frame(uint32_t index) const { return frames_[index]; }
  absl::Span<const uint32_t> operator[](uint32_t stack) const {
    return absl::MakeConstSpan(frame_lists_)
        .subspan(offsets_[stack], offsets_[stack + 1] - offsets_[stack]);
  }
  size_t size() const { return offsets_.size() - 1; }
  size_t frame_count() const { return frames_.size(); }

 private:
  std::vector<Frame> frames_;
  absl::flat_hash_map<Frame, uint32_t> frame_index_;
  std::vector<uint32_t> frame_lists_;  // all stacks, concatenated
  std::vector<uint64_t> offsets_;      // stack i is [offsets_[i], offsets_[i + 1])
  // A hash table from stack content to stack number; collisions are chained by next_with_hash_.
  absl::flat_hash_map<uint64_t, uint32_t> first_with_hash_;
  std::vector<uint32_t> next_with_hash_;
};

}  // namespace memreplay

// Names the stacks of a trace as a report shows them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "proto/report.pb.h"
#include "report/words/frame_text.h"
#include "trace/value/trace.h"

namespace memreplay {

// The names of the stacks of a trace. No two are alike, and each is always the same.
//
// The line of a stack is its innermost frame of the user's own code, and the innermost frame of a
// library that it calls: "model.py:54 forward > einops/einops.py:532 rearrange". A stack without
// own code has a library's frame instead, else PyTorch's, else the node of the backward pass and
// the operator: "MulBackward0 > aten::mul_Tensor".
//
// The label is the line and, if other stacks have it too, what distinguishes them: the operator (">
// aten::mul_Tensor"), callers (", from train.py:33 step"), any other frame (">
// torch/optim/adam.py:81 step"), or finally a number ("#2").
class StackNames {
 public:
  // The trace must outlive this. O(frames of all stacks).
  explicit StackNames(const Trace& trace);

  const std::string& Line(uint32_t stack) const { return lines_[line_[stack]]; }
  // Returns the label. O(frames of the stacks of the same line), once for each line.
  const std::string& Label(uint32_t stack);
  // Returns the label and all frames.
  proto::Stack Of(uint32_t stack);

 private:
  using Group = std::vector<uint32_t>;

  FrameOrigin Origin(uint32_t frame) const { return origins_[frame]; }
  const std::string& Short(uint32_t frame);
  std::string LineOf(uint32_t stack);
  std::string DetailOf(uint32_t stack);
  std::vector<uint32_t> FramesOf(uint32_t stack, int round) const;
  std::string OperatorOrShort(uint32_t frame);
  // Returns whether a column distinguishes the stacks of the group; if so, labels each part by
  // itself.
  bool SplitBy(const Group& group, const std::vector<std::string>& details, int round);
  void Refine(const Group& group, int round);

  const Trace& trace_;
  std::vector<FrameOrigin> origins_;  // of each frame
  std::vector<std::string> short_;    // likewise; "" until needed
  std::vector<std::string> lines_;
  std::vector<uint32_t> line_;       // of each stack
  std::vector<Group> stacks_;        // of each line
  std::vector<std::string> labels_;  // of each stack; "" until needed
};

// Returns whether the summary or a frame contains `text`, ignoring case.
bool StackHas(const proto::Stack& stack, std::string_view text);

// Returns the tag that a written schedule gave to an allocation; "" for stacks of recordings.
std::string TagOf(const Trace& trace, uint32_t stack);

}  // namespace memreplay

#include "report/words/stack_names.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "report/words/text.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// What distinguishes stacks of one line is searched in this order.
constexpr int kCallerRounds = 4;
constexpr int kInwardRounds = 4;
constexpr int kFrameRounds = 4;
constexpr int kFirstInward = 1 + kCallerRounds;
constexpr int kFirstFrame = kFirstInward + kInwardRounds;
constexpr int kNumber = kFirstFrame + kFrameRounds;

}  // namespace

StackNames::StackNames(const Trace& trace) : trace_(trace) {
  origins_.reserve(trace.stacks.frame_count());
  absl::flat_hash_map<uint32_t, FrameOrigin> of_file;
  for (uint32_t i = 0; i < trace.stacks.frame_count(); ++i) {
    const uint32_t file = trace.stacks.frame(i).filename;
    const auto [entry, is_new] = of_file.try_emplace(file, FrameOrigin::kNative);
    if (is_new) entry->second = OriginOf(trace.strings[file]);
    origins_.push_back(entry->second);
  }
  short_.resize(origins_.size());
  absl::flat_hash_map<std::string, uint32_t> known;
  for (uint32_t stack = 0; stack < trace.stacks.size(); ++stack) {
    std::string line = LineOf(stack);
    const auto [entry, is_new] = known.try_emplace(line, lines_.size());
    if (is_new) {
      lines_.push_back(std::move(line));
      stacks_.emplace_back();
    }
    line_.push_back(entry->second);
    stacks_[entry->second].push_back(stack);
  }
  labels_.resize(line_.size());
}

const std::string& StackNames::Short(uint32_t frame) {
  std::string& text = short_[frame];
  if (text.empty()) text = ShortFrame(trace_, trace_.stacks.frame(frame));
  return text;
}

std::string StackNames::LineOf(uint32_t stack) {
  const absl::Span<const uint32_t> frames = trace_.stacks[stack];
  if (frames.empty()) return "no stack recorded";
  const auto innermost = [&](FrameOrigin origin) {
    return absl::c_find_if(frames, [&](uint32_t frame) { return Origin(frame) == origin; });
  };
  const auto own = innermost(FrameOrigin::kOwn);
  const auto library = innermost(FrameOrigin::kLibrary);
  if (own != frames.end()) {
    return library < own ? StrCat(Short(*own), " > ", Short(*library)) : Short(*own);
  }
  if (library != frames.end()) return Short(*library);
  if (const auto found = innermost(FrameOrigin::kMachinery); found != frames.end()) {
    return Short(*found);
  }
  std::string node, operation;
  const auto name = [&](uint32_t frame) { return trace_.strings[trace_.stacks.frame(frame).name]; };
  for (const uint32_t frame : frames) {
    if (node = BackwardNodeOf(name(frame)); !node.empty()) break;
    if (std::string outer = OperatorOf(name(frame)); !outer.empty()) operation = std::move(outer);
  }
  if (!node.empty() || !operation.empty()) {
    return StrCat(node, node.empty() || operation.empty() ? "" : " > ", operation);
  }
  const auto asking =
      absl::c_find_if(frames, [&](uint32_t frame) { return !IsPlumbing(name(frame)); });
  return Short(asking == frames.end() ? frames[0] : *asking);
}

// Returns the operator that the innermost Python called, else that Python's frame.
std::string StackNames::DetailOf(uint32_t stack) {
  std::string operation;
  for (const uint32_t frame : trace_.stacks[stack]) {
    if (Origin(frame) != FrameOrigin::kNative) {
      if (operation.empty() && Origin(frame) == FrameOrigin::kMachinery) return Short(frame);
      break;
    }
    std::string outer = OperatorOf(trace_.strings[trace_.stacks.frame(frame).name]);
    if (!outer.empty()) operation = std::move(outer);
  }
  return operation;
}

// Returns the frames that a round examines, in its order: callers outwards from the one that names
// the line; PyTorch's Python and the operators inwards from there; or all inwards.
std::vector<uint32_t> StackNames::FramesOf(uint32_t stack, int round) const {
  const absl::Span<const uint32_t> frames = trace_.stacks[stack];
  const auto is_code = [&](uint32_t frame) {
    return Origin(frame) == FrameOrigin::kOwn || Origin(frame) == FrameOrigin::kLibrary;
  };
  std::vector<uint32_t> chosen;
  if (round < kFirstInward) {
    for (const uint32_t frame : frames) {
      if (is_code(frame)) chosen.push_back(frame);
    }
    return chosen;
  }
  if (round >= kFirstFrame) {
    for (size_t i = frames.size(); i-- > 0;) {
      if (!IsPlumbing(trace_.strings[trace_.stacks.frame(frames[i]).name])) {
        chosen.push_back(frames[i]);
      }
    }
    return chosen;
  }
  const auto line = absl::c_find_if(frames, is_code);
  for (auto frame = line; frame-- != frames.begin();) {
    const bool is_operator = !OperatorOf(trace_.strings[trace_.stacks.frame(*frame).name]).empty();
    if (Origin(*frame) == FrameOrigin::kMachinery || is_operator) chosen.push_back(*frame);
  }
  return chosen;
}

std::string StackNames::OperatorOrShort(uint32_t frame) {
  std::string text = OperatorOf(trace_.strings[trace_.stacks.frame(frame).name]);
  return text.empty() ? Short(frame) : text;
}

bool StackNames::SplitBy(const Group& group, const std::vector<std::string>& details, int round) {
  std::map<std::string, Group> parts;
  for (size_t i = 0; i < group.size(); ++i) parts[details[i]].push_back(group[i]);
  if (parts.size() < 2) return false;
  for (const auto& [detail, part] : parts) {
    for (const uint32_t stack : part) labels_[stack] += detail;
    Refine(part, round);
  }
  return true;
}

void StackNames::Refine(const Group& group, int round) {
  if (group.size() < 2) return;
  if (round == kNumber) {
    for (size_t i = 1; i < group.size(); ++i) StrAppend(&labels_[group[i]], " #", i + 1);
    return;
  }
  std::vector<std::string> details(group.size());
  if (round == 0) {
    for (size_t i = 0; i < group.size(); ++i) {
      const std::string detail = DetailOf(group[i]);
      if (!detail.empty() && !absl::EndsWith(labels_[group[i]], detail)) {
        details[i] = StrCat(" > ", detail);
      }
    }
    if (!SplitBy(group, details, 1)) Refine(group, 1);
    return;
  }
  // Use the first frame in which not all are the same.
  std::vector<std::vector<uint32_t>> columns;
  size_t longest = 0;
  for (const uint32_t stack : group) {
    columns.push_back(FramesOf(stack, round));
    longest = std::max(longest, columns.back().size());
  }
  for (size_t at = 0; at < longest; ++at) {
    const auto frame = [&](size_t i) {
      return at < columns[i].size() ? columns[i][at] : UINT32_MAX;
    };
    bool differ = false;
    for (size_t i = 1; i < group.size() && !differ; ++i) differ = frame(i) != frame(0);
    if (!differ) continue;
    for (size_t i = 0; i < group.size(); ++i) {
      details[i] = frame(i) == UINT32_MAX ? ""
                   : round < kFirstInward ? StrCat(", from ", Short(frame(i)))
                                          : StrCat(" > ", OperatorOrShort(frame(i)));
    }
    if (SplitBy(group, details, round + 1)) return;
  }
  // No frame of this kind distinguishes them.
  Refine(group, round < kFirstInward ? kFirstInward : round < kFirstFrame ? kFirstFrame : kNumber);
}

const std::string& StackNames::Label(uint32_t stack) {
  if (labels_[stack].empty()) {
    const Group& group = stacks_[line_[stack]];
    for (const uint32_t other : group) labels_[other] = Line(other);
    Refine(group, 0);
  }
  return labels_[stack];
}

proto::Stack StackNames::Of(uint32_t stack) {
  proto::Stack result;
  result.set_summary(Label(stack));
  const absl::Span<const uint32_t> frames = trace_.stacks[stack];
  result.set_depth(std::ssize(frames));
  for (size_t i = 0; i < frames.size(); ++i) {
    result.add_frames(WholeFrame(trace_, trace_.stacks.frame(frames[i])));
    if (Origin(frames[i]) == FrameOrigin::kOwn) result.add_own(static_cast<int32_t>(i));
  }
  return result;
}

bool StackHas(const proto::Stack& stack, std::string_view text) {
  const std::string wanted = absl::AsciiStrToLower(ToAbsl(text));
  const auto has = [&](const std::string& part) {
    return absl::StrContains(absl::AsciiStrToLower(part), wanted);
  };
  return has(stack.summary()) || absl::c_any_of(stack.frames(), has);
}

std::string TagOf(const Trace& trace, uint32_t stack) {
  const absl::Span<const uint32_t> frames = trace.stacks[stack];
  if (!trace.is_program || frames.empty()) return "";
  const Frame& frame = trace.stacks.frame(frames[0]);
  return frame.line != 0 ? "" : CleanText(trace.strings[frame.filename]);
}

}  // namespace memreplay

#include "report/words/stack_text.h"

#include <string_view>

#include "absl/strings/match.h"
#include "report/words/text.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr size_t kMaxSummary = 100;

bool IsPython(std::string_view file) { return absl::EndsWith(ToAbsl(file), ".py"); }

bool IsTorch(std::string_view file) {
  const absl::string_view path = ToAbsl(file);
  return absl::StrContains(path, "/torch/") || absl::StrContains(path, "\\torch\\") ||
         absl::StartsWith(path, "torch/");
}

// Frames that every allocation has: the recorder, the allocator, the making of
// an empty tensor.
bool IsPlumbing(std::string_view name) {
  for (const std::string_view part :
       {"torch::unwind::", "CapturedTraceback", "gather_with_cpp", "CUDACachingAllocator",
        "at::detail::", "c10::StorageImpl", "at::(anonymous namespace)::create_out"}) {
    if (name.find(part) != std::string_view::npos) return true;
  }
  return name.empty();
}

// The last two directories and the name.
std::string_view ShortPath(std::string_view path) {
  size_t at = path.size();
  for (int parts = 0; parts < 3; ++parts) {
    at = path.find_last_of("/\\", at - 1);
    if (at == std::string_view::npos || at == 0) return path;
  }
  return path.substr(at + 1);
}

std::string FrameText(const Trace& trace, const Frame& frame, bool shortened) {
  std::string_view file = trace.strings[frame.filename];
  const std::string_view name = trace.strings[frame.name];
  if (shortened) file = ShortPath(file);
  if (file == "??") file = {};
  std::string text(file);
  if (frame.line != 0) StrAppend(&text, ":", frame.line);
  if (!name.empty()) StrAppend(&text, text.empty() ? "" : " ", name);
  return CleanText(text);
}

}  // namespace

proto::Stack StackOf(const Trace& trace, uint32_t stack) {
  proto::Stack result;
  const absl::Span<const uint32_t> frames = trace.stacks[stack];
  result.set_depth(static_cast<int64_t>(frames.size()));
  const Frame* own = nullptr;
  const Frame* python = nullptr;
  for (size_t i = 0; i < frames.size(); ++i) {
    const Frame& frame = trace.stacks.frame(frames[i]);
    if (result.frames_size() < kMaxFrames) *result.add_frames() = FrameText(trace, frame, false);
    const std::string_view file = trace.strings[frame.filename];
    if (!IsPython(file)) continue;
    if (python == nullptr) python = &frame;
    if (own == nullptr && !IsTorch(file)) own = &frame;
  }
  if (own == nullptr) own = python;
  for (const uint32_t index : frames) {  // no Python: what asked the allocator
    if (own != nullptr) break;
    const Frame& frame = trace.stacks.frame(index);
    if (!IsPlumbing(trace.strings[frame.name])) own = &frame;
  }
  if (own == nullptr && !frames.empty()) own = &trace.stacks.frame(frames[0]);
  std::string summary = own == nullptr ? "no stack recorded" : FrameText(trace, *own, true);
  if (summary.size() > kMaxSummary)
    summary = CleanText(StrCat(summary.substr(0, kMaxSummary), "..."));
  result.set_summary(std::move(summary));
  return result;
}

std::string TagOf(const Trace& trace, uint32_t stack) {
  const absl::Span<const uint32_t> frames = trace.stacks[stack];
  if (!trace.is_program || frames.empty()) return "";
  const Frame& frame = trace.stacks.frame(frames[0]);
  return frame.line != 0 ? "" : CleanText(trace.strings[frame.filename]);
}

}  // namespace memreplay

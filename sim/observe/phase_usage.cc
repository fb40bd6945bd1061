#include "sim/observe/phase_usage.h"

#include <algorithm>

namespace memreplay {

const Frame* PhaseUsage::FrameOf(const Event& event) const {
  const auto frames = trace_.stacks[event.text_or_stack];
  return frames.empty() ? nullptr : &trace_.stacks.frame(frames[0]);
}

std::map<std::string, Bytes> PhaseUsage::LiveByTag() const {
  std::map<std::string, Bytes> live;
  for (const auto& [tag, bytes] : by_tag_) {
    if (bytes > Bytes(0)) live[std::string(trace_.strings[tag])] = bytes;
  }
  return live;
}

void PhaseUsage::OnMark(const Event& event) {
  const std::string text(trace_.strings[event.text_or_stack]);
  switch (event.mark()) {
    case MarkKind::kPhase:
      phases_.emplace_back();
      phases_.back().phase = text;
      phases_.back().allocated = usage_.current().allocated();
      phases_.back().reserved = usage_.current().reserved();
      phases_.back().by_tag = LiveByTag();
      label_.clear();
      break;
    case MarkKind::kLabel: label_ = text; break;
    case MarkKind::kRetag: {
      const auto live = live_.find(event.id);
      if (live == live_.end()) break;
      by_tag_[live->second.tag] -= live->second.block;
      live->second.tag = event.text_or_stack;
      by_tag_[live->second.tag] += live->second.block;
      break;
    }
    default: break;
  }
}

void PhaseUsage::OnEvent(const Event& event) {
  if (oom_.has_value()) return;
  usage_.OnEvent(event);
  PhasePeak& phase = phases_.back();
  switch (event.kind) {
    case EventKind::kMark: OnMark(event); return;
    case EventKind::kAlloc: {
      const Frame* frame = FrameOf(event);
      const Bytes block = event.block_size == Bytes(0) ? event.size : event.block_size;
      const uint32_t tag = frame == nullptr ? kNoText : frame->filename;
      live_[event.id] = {tag, block};
      by_tag_[tag] += block;
      break;
    }
    case EventKind::kFree: {
      const auto live = live_.find(event.id);
      if (live == live_.end()) break;
      by_tag_[live->second.tag] -= live->second.block;
      live_.erase(live);
      break;
    }
    case EventKind::kOom: {
      const Frame* frame = FrameOf(event);
      oom_ = {phase.phase,
              label_,
              frame == nullptr ? "" : std::string(trace_.strings[frame->name]),
              event.size,
              usage_.current().allocated(),
              usage_.current().reserved()};
      return;
    }
    default: break;
  }
  phase.reserved = std::max(phase.reserved, usage_.current().reserved());
  if (usage_.current().allocated() > phase.allocated) {
    phase.allocated = usage_.current().allocated();
    phase.by_tag = LiveByTag();
  }
}

std::vector<PhasePeak> PhaseUsage::phases() const {
  std::vector<PhasePeak> result = phases_;
  if (result.front().allocated == Bytes(0)) result.erase(result.begin());
  return result;
}

const PhasePeak& PhaseUsage::highest() const {
  return *std::max_element(
      phases_.begin(), phases_.end(),
      [](const PhasePeak& a, const PhasePeak& b) { return a.allocated < b.allocated; });
}

}  // namespace memreplay

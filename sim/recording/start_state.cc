#include "sim/recording/start_state.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sim/recording/start_parts.h"
#include "sim/settings/size_rules.h"

namespace memreplay {
namespace {

class Rebuilder {
 public:
  Rebuilder(const Schedule& schedule, const AllocatorConfig& config, const TorchProfile& profile)
      : schedule_(schedule), config_(config), profile_(profile) {}

  StartState Run() && {
    StartSegmentList start = StartSegments(schedule_, config_.large_segment_size);
    state_.segments = std::move(start.segments);
    if (!start.left_out.empty()) {
      if (schedule_.diagnostics().count(DiagnosticKind::kImpossibleSegment) == 0) {
        state_.diagnostics.Add(DiagnosticKind::kImpossibleSegment, 0, start.left_out);
      }
      Contradict(0, std::move(start.left_out));
    }
    PlaceBlocks();
    if (!open_.empty()) Solve();
    FillGaps();
    return std::move(state_);
  }

 private:
  // Gives every start allocation its segment and, as far as its neighbours determine it, its
  // extent.
  void PlaceBlocks() {
    const absl::Span<const StartAllocation> starts = schedule_.start_allocations();
    for (size_t i = 0; i < starts.size(); ++i) {
      const StartAllocation& start = starts[i];
      SegmentInfo* segment = SegmentOf(start.address);
      if (segment == nullptr) {
        Contradict(0, absl::StrCat("the block at 0x", absl::Hex(start.address.value()),
                                   ", live at the start, is not in any known segment"));
        continue;
      }
      Address end = segment->address + segment->total_size;
      if (i + 1 < starts.size()) end = std::min(end, starts[i + 1].address);
      if (end == start.address || start.block_size == Bytes(0)) {
        Contradict(0, absl::StrCat("the block at 0x", absl::Hex(start.address.value()),
                                   ", live at the beginning, has no bytes, or is there twice"));
        continue;
      }
      BlockInfo block;
      block.address = start.address;
      block.requested_size = start.requested_size;
      block.state = start.state;
      block.id = start.id;
      block.stack = start.stack;
      block.pending_stream = start.pending_stream;
      block.size = Extent(start, *segment, end - start.address,
                          end == segment->address + segment->total_size);
      segment->blocks.push_back(block);
    }
  }

  // Returns the extent of a block; `room` is the bytes to the next live block, or to the segment's
  // end.
  Bytes Extent(const StartAllocation& start, const SegmentInfo& segment, Bytes room,
               bool reaches_end) {
    if (start.block_size.has_value()) {
      ++state_.given;
      return std::min(*start.block_size, room);
    }
    const Bytes rounded =
        RoundSize(std::min(start.requested_size, kMaxDeviceMemory), config_, profile_);
    if (rounded > room) {
      Contradict(0, absl::StrCat("the block at 0x", absl::Hex(start.address.value()), " of ",
                                 start.requested_size.value(), " bytes overlaps the next"));
      return room;
    }
    const bool splits_finely =
        !segment.is_large || segment.is_expandable || config_.expandable_segments;
    if (splits_finely) {
      ++state_.given;
      return rounded;
    }
    // Blocks of max_split_size or more are never split.
    const bool whole = rounded >= config_.max_split_size && reaches_end;
    // A free block behind it would have more than 1 MiB.
    if (whole || room - rounded <= kSmallSize) {
      ++state_.given;
      return room;
    }
    OpenExtent open;
    open.address = start.address;
    open.id = start.id;
    open.rounded = rounded;
    open.requested = start.requested_size;
    open.max_slack = std::min(kSmallSize, room - rounded - kSmallSize - kMinBlockSize);
    open_.push_back(std::move(open));
    return rounded;
  }

  void Solve() {
    const ExtentEvidence evidence =
        FollowAddresses(schedule_, config_, profile_, state_.segments, open_);
    if (evidence.contradicted_at.has_value()) {
      Contradict(*evidence.contradicted_at, evidence.contradiction);
    }
    for (const OpenExtent& open : open_) {
      Bytes slack;
      if (open.revealed.has_value()) {
        slack = *open.revealed;
        ++state_.revealed;
      } else {
        const std::vector<Bytes> slacks = FeasibleSlacks(open);
        if (!slacks.empty()) slack = open.assumed.value_or(slacks.front());
        HiddenExtent hidden;
        hidden.address = open.address;
        hidden.requested = open.requested;
        hidden.smallest = open.rounded + (slacks.empty() ? Bytes() : slacks.front());
        hidden.largest = open.rounded + (slacks.empty() ? Bytes() : slacks.back());
        hidden.choices = slacks.size();
        hidden.chosen = open.rounded + slack;
        hidden.freed_by = open.freed_by;
        if (slacks.empty()) {
          Contradict(open.ruled_out_by,
                     absl::StrCat("no extent of the block at 0x", absl::Hex(open.address.value()),
                                  " makes every recorded address the best fit"));
        } else if (slacks.size() > 1) {
          state_.diagnostics.Add(
              DiagnosticKind::kStartStateUnderdetermined, open.freed_by,
              absl::StrCat("block at 0x", absl::Hex(open.address.value()), " of ",
                           open.requested.value(), " bytes had ", hidden.smallest.value(), " to ",
                           hidden.largest.value(), "; ", hidden.chosen.value(), " assumed"));
        }
        state_.hidden.push_back(hidden);
      }
      if (slack > Bytes(0)) Extend(open, slack);
    }
  }

  // Extends a block. It ends at the next block, or at the end of the segment, at the latest;
  // evidence of more contradicts it.
  void Extend(const OpenExtent& open, Bytes slack) {
    SegmentInfo& segment = *SegmentOf(open.address);
    const auto block = std::lower_bound(
        segment.blocks.begin(), segment.blocks.end(), open.address,
        [](const BlockInfo& info, Address address) { return info.address < address; });
    const auto next = std::next(block);
    const Address end =
        next != segment.blocks.end() ? next->address : segment.address + segment.total_size;
    if (open.rounded + slack > end - open.address) {
      Contradict(open.freed_by, absl::StrCat("the block at 0x", absl::Hex(open.address.value()),
                                             " reaches beyond what follows it"));
    }
    block->size = std::min(open.rounded + slack, end - open.address);
  }

  void FillGaps() {
    for (SegmentInfo& segment : state_.segments) {
      std::vector<BlockInfo> blocks;
      Address next = segment.address;
      const auto fill = [&blocks, &next](Address end) {
        if (next >= end) return;
        BlockInfo free;
        free.address = next;
        free.size = end - next;
        blocks.push_back(free);
      };
      for (const BlockInfo& block : segment.blocks) {
        fill(block.address);
        blocks.push_back(block);
        next = block.address + block.size;
      }
      fill(segment.address + segment.total_size);
      segment.blocks = std::move(blocks);
    }
  }

  SegmentInfo* SegmentOf(Address address) {
    auto it =
        std::upper_bound(state_.segments.begin(), state_.segments.end(), address,
                         [](Address a, const SegmentInfo& segment) { return a < segment.address; });
    if (it == state_.segments.begin()) return nullptr;
    --it;
    return address < it->address + it->total_size ? &*it : nullptr;
  }

  // Keeps the earliest contradiction.
  void Contradict(uint64_t event, std::string why) {
    if (state_.contradicted_at.has_value() && *state_.contradicted_at <= event) return;
    state_.contradicted_at = event;
    state_.contradiction = std::move(why);
  }

  const Schedule& schedule_;
  const AllocatorConfig& config_;
  const TorchProfile& profile_;
  StartState state_;
  std::vector<OpenExtent> open_;  // ascending by address
};

}  // namespace

StartState RebuildStartState(const Schedule& schedule, const AllocatorConfig& config,
                             const TorchProfile& profile) {
  return Rebuilder(schedule, config, profile).Run();
}

}  // namespace memreplay

#include "sim/observe/fidelity.h"

#include "sim/model/allocator.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

bool SameEntry(const Event& a, const Event& b) {
  return a.kind == b.kind && a.address == b.address && a.size == b.size && a.stream == b.stream;
}

std::string Describe(const Event& event, const Schedule& schedule) {
  const std::string_view name = EventKindName(event.kind);
  if (event.kind == EventKind::kSnapshot) {
    return StrCat(name, " with ", event.size.value(), " active bytes");
  }
  if (event.kind == EventKind::kOom) {
    return StrCat(name, " of ", event.size.value(), " bytes, ", event.device_free().value(),
                  " free");
  }
  std::string text =
      StrCat(name, " of ", event.size.value(), " bytes at 0x", absl::Hex(event.address.value()));
  const StreamHandle stream = schedule.stream_handle(event.stream);
  if (stream.value() != 0) StrAppend(&text, " on stream 0x", absl::Hex(stream.value()));
  return text;
}

std::string DescribeBlock(const BlockInfo& block) {
  return StrCat(BlockStateName(block.state), ", ", block.size.value(), " bytes, requested ",
                block.requested_size.value());
}

bool SameBlock(const BlockInfo& a, const BlockInfo& b) {
  return a.address == b.address && a.size == b.size && a.requested_size == b.requested_size &&
         a.state == b.state;
}

bool SameSegment(const SegmentInfo& a, const SegmentInfo& b) {
  return a.address == b.address && a.total_size == b.total_size && a.stream == b.stream &&
         a.is_large == b.is_large && a.is_expandable == b.is_expandable && a.pool_id == b.pool_id;
}

std::vector<const BlockInfo*> AllBlocks(const MemoryState& state) {
  std::vector<const BlockInfo*> blocks;
  for (const SegmentInfo& segment : state) {
    for (const BlockInfo& block : segment.blocks) blocks.push_back(&block);
  }
  return blocks;
}

}  // namespace

std::string DescribeDivergence(const Divergence& divergence, const Schedule& schedule) {
  return StrCat(
      "recorded ",
      divergence.recorded.has_value() ? Describe(*divergence.recorded, schedule) : "nothing more",
      ", simulated ",
      divergence.simulated.has_value() ? Describe(*divergence.simulated, schedule)
                                       : "nothing more");
}

Fidelity::Fidelity(const Schedule& schedule, bool may_stop)
    : schedule_(schedule),
      may_stop_(may_stop),
      head_end_(schedule.recorded_begin().empty() ? schedule.recorded().size()
                                                  : schedule.recorded_begin().front()) {}

void Fidelity::OnStart(const MemoryState& /*state*/, const Allocator& allocator) {
  active_ = Bytes(static_cast<uint64_t>(allocator.statistics().active_bytes.all.current()));
}

uint64_t Fidelity::exact_until_event() const {
  return first_divergence_.has_value() ? first_divergence_->index : schedule_.recorded().size();
}

void Fidelity::Diverge(uint64_t index, const Event* recorded, const Event* simulated) {
  if (first_divergence_.has_value()) return;
  Divergence& divergence = first_divergence_.emplace();
  divergence.index = index;
  if (recorded != nullptr) divergence.recorded = *recorded;
  if (simulated != nullptr) divergence.simulated = *simulated;
}

void Fidelity::SkipAsides(uint64_t end) {
  const EventView events = schedule_.recorded();
  for (; next_ < end; ++next_) {
    const EventKind kind = events.kind(next_);
    if (kind == EventKind::kSnapshot) {
      const Event recorded = events[next_];
      ++compared_;
      if (recorded.size == active_) {
        ++matched_;
      } else {
        Event simulated = recorded;
        simulated.size = active_;
        Diverge(next_, &recorded, &simulated);
      }
    } else if (IsTraced(kind)) {
      return;
    }
  }
}

void Fidelity::Advance(uint64_t end) {
  for (SkipAsides(end); next_ < end; SkipAsides(end)) {
    if (next_ >= head_end_) {
      ++compared_;
      const Event recorded = schedule_.recorded()[next_];
      Diverge(next_, &recorded, nullptr);
    }
    ++next_;
  }
}

void Fidelity::OnRequest(size_t request) {
  const absl::Span<const uint32_t> begins = schedule_.recorded_begin();
  Advance(begins[request]);
  end_ = request + 1 < begins.size() ? begins[request + 1] : schedule_.recorded().size();
}

void Fidelity::OnEvent(const Event& event) {
  if (!IsTraced(event.kind)) return;
  SkipAsides(end_);
  if (event.kind == EventKind::kAlloc) active_ += event.block_size;
  if (event.kind == EventKind::kFreeCompleted) active_ -= event.block_size;
  if (next_ >= end_) {
    ++surplus_;
    Diverge(next_, nullptr, &event);
    return;
  }
  const Event recorded = schedule_.recorded()[next_];
  ++compared_;
  if (SameEntry(recorded, event)) {
    ++matched_;
  } else {
    Diverge(next_, &recorded, &event);
  }
  ++next_;
}

FinalComparison CompareFinalState(const MemoryState& recorded, const MemoryState& simulated) {
  FinalComparison result;
  for (size_t r = 0, s = 0; r < recorded.size(); ++r) {
    ++result.segments_compared;
    while (s < simulated.size() && simulated[s].address < recorded[r].address) ++s;
    if (s < simulated.size() && SameSegment(recorded[r], simulated[s])) {
      ++result.segments_matched;
    } else if (result.first_mismatch.empty()) {
      result.first_mismatch = StrCat("segment 0x", absl::Hex(recorded[r].address.value()), " of ",
                                     recorded[r].total_size.value(), " bytes");
    }
  }

  const std::vector<const BlockInfo*> expected = AllBlocks(recorded);
  const std::vector<const BlockInfo*> found = AllBlocks(simulated);
  size_t f = 0;
  uint64_t at_recorded_addresses = 0;
  for (const BlockInfo* block : expected) {
    ++result.compared;
    while (f < found.size() && found[f]->address < block->address) ++f;
    const BlockInfo* other =
        f < found.size() && found[f]->address == block->address ? found[f] : nullptr;
    if (other != nullptr) ++at_recorded_addresses;
    if (other != nullptr && SameBlock(*block, *other)) {
      ++result.matched;
    } else if (result.first_mismatch.empty()) {
      result.first_mismatch = StrCat("block 0x", absl::Hex(block->address.value()), ": recorded ",
                                     DescribeBlock(*block), "; simulated ",
                                     other != nullptr ? DescribeBlock(*other) : "none");
    }
  }
  result.surplus = found.size() - at_recorded_addresses;
  return result;
}

}  // namespace memreplay

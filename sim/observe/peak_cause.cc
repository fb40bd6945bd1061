#include "sim/observe/peak_cause.h"

#include <algorithm>

#include "sim/settings/size_rules.h"

namespace memreplay {
Obstacle PeakCause::main() const {
  Obstacle most = Obstacle::kOtherPool;
  for (size_t i = 0; i < static_cast<size_t>(Obstacle::kFits); ++i) {
    if (cached[i].bytes > (*this)[most].bytes) most = static_cast<Obstacle>(i);
  }
  return most;
}

void PeakCauseObserver::OnEvent(const Event& event) {
  const uint64_t index = events_++;
  if (cause_.known || index < at_event_) return;
  if (event.kind != EventKind::kAlloc && event.kind != EventKind::kOom) return;
  cause_.known = true;
  cause_.requested = event.size;
  cause_.stream = event.stream;
  cause_.stack = event.text_or_stack;
  cause_.id = event.id;
  const bool is_large = event.size > kSmallSize;
  const Bytes needed = event.block_size == Bytes(0) ? event.size : event.block_size;
  allocator_->VisitFreeBlocks([&](const FreeBlock& block) {
    Obstacle obstacle = Obstacle::kTooSmall;
    if (block.pool != event.pool || block.is_large != is_large) {
      obstacle = Obstacle::kOtherPool;
    } else if (block.stream != event.stream) {
      obstacle = Obstacle::kOtherStream;
    } else if (block.size >= needed) {
      obstacle = needed < config_.max_split_size && block.size >= config_.max_split_size
                     ? Obstacle::kOversize
                     : Obstacle::kFits;
    } else if (block.is_split) {
      obstacle = Obstacle::kSplit;
    }
    CachedBytes& sum = cause_.cached[static_cast<size_t>(obstacle)];
    sum.bytes += block.size;
    if (block.size > sum.largest) {
      sum.largest = block.size;
      sum.largest_address = block.address;
    }
    ++sum.blocks;
  });
}

}  // namespace memreplay

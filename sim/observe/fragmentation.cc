#include "sim/observe/fragmentation.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/settings/size_rules.h"

namespace memreplay {
namespace {

// The number of blocks that samples may visit during the run so far and still cost less than
// another run.
constexpr uint64_t kFreeWork = 100'000;
constexpr uint64_t kWorkPerEvent = 4;
constexpr uint64_t kWorkToKeep = 4;  // for each block of the segments

}  // namespace

FragmentationObserver::FragmentationObserver(const UsageObserver& usage,
                                             const MomentsObserver& moments,
                                             const FragmentationOptions& options)
    : usage_(usage), moments_(moments), options_(options) {}

void FragmentationObserver::OnStart(const MemoryState& /*state*/, const Allocator& allocator) {
  allocator_ = &allocator;
  if (!options_.at_event.has_value()) Sample(UsageObserver::kAtStart);
}

// Returns whether to take a sample after this event, which ends a request.
bool FragmentationObserver::IsMoment(uint64_t event) {
  if (options_.at_event.has_value()) return !sample_.has_value() && event >= *options_.at_event;
  if (moments_.moments().at_peak.event != event) return false;
  // A later moment may be sampled again, because by then the run has cost more.
  gave_up_ = options_.may_give_up && (allocations_ <= options_.skipped_allocations ||
                                      work_ > kFreeWork + kWorkPerEvent * event);
  if (gave_up_) sample_.reset();
  return !gave_up_;
}

void FragmentationObserver::OnEvent(const Event& event) {
  const uint64_t index = next_event_++;
  if (event.kind != EventKind::kAlloc && event.kind != EventKind::kOom) return;
  ++allocations_;
  const Request request{allocator_->BlockSizeFor(event.size), event.stream, event.pool};
  const size_t kept = std::max<size_t>(options_.last_requests, 1);
  if (recent_.size() < kept) {
    recent_.push_back(request);
  } else {
    recent_[oldest_] = request;
    if (++oldest_ == kept) oldest_ = 0;
  }
  if (IsMoment(index)) Sample(index);
}

void FragmentationObserver::OnEnd() {
  if (!sample_.has_value() && !gave_up_) Sample(next_event_ == 0 ? 0 : next_event_ - 1);
}

void FragmentationObserver::Sample(uint64_t event) {
  Fragmentation& sample = sample_.emplace();
  sample.at_event = event;
  sample.usage = usage_.current();
  sample.internal = sample.usage.active() - sample.usage.requested();
  sample.unused = sample.usage.reserved() - sample.usage.active();
  sample.requests = recent_.size();
  if (options_.keep_segments) {
    sample.segments = allocator_->Segments();
    for (const SegmentInfo& segment : sample.segments) work_ += kWorkToKeep * segment.blocks.size();
  }
  work_ += recent_.size() / 8;

  // The smallest recent request that each free set could have had to serve.
  std::map<std::tuple<uint16_t, bool, uint32_t>, Bytes> smallest;
  for (const Request& request : recent_) {
    const auto key = std::make_tuple(request.pool, !IsSmall(request.size), request.stream);
    const auto [entry, is_new] = smallest.emplace(key, request.size);
    if (!is_new) entry->second = std::min(entry->second, request.size);
  }
  std::map<std::tuple<uint16_t, bool, uint32_t>, size_t> set_index;
  allocator_->VisitFreeBlocks([&](const FreeBlock& block) {
    ++work_;
    const auto key = std::make_tuple(block.pool, block.is_large, block.stream);
    const auto [entry, is_new] = set_index.emplace(key, sample.free_sets.size());
    if (is_new) {
      sample.free_sets.push_back(
          {.pool = block.pool, .is_large = block.is_large, .stream = block.stream});
    }
    FreeSetUse& set = sample.free_sets[entry->second];
    set.largest = std::max(set.largest, block.size);
    set.free += block.size;
    ++set.blocks;
    sample.free += block.size;
    if (block.is_split && !block.is_expandable) sample.inactive_split += block.size;
    const auto wanted = smallest.find(key);
    if (wanted == smallest.end() || block.size < wanted->second) sample.unservable += block.size;
  });
}

}  // namespace memreplay

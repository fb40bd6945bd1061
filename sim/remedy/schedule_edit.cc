#include "sim/remedy/schedule_edit.h"

#include <algorithm>

namespace memreplay {
std::vector<AllocationSpan> AllocationSpans(const Schedule& schedule) {
  std::vector<AllocationSpan> spans(schedule.allocation_count());
  for (const StartAllocation& start : schedule.start_allocations()) {
    spans[start.id].size = start.requested_size;
    spans[start.id].stack = start.stack;
    spans[start.id].stream = start.stream;
  }
  uint32_t i = 0;
  int in_pool = 0;  // current number of pools that the script's allocations go to
  for (const Event& request : schedule.requests()) {
    if (request.kind == EventKind::kPoolBegin) ++in_pool;
    if (request.kind == EventKind::kPoolEnd) --in_pool;
    if (request.id < spans.size()) {
      AllocationSpan& span = spans[request.id];
      if (request.kind == EventKind::kAlloc) {
        span = {i,
                kNoRequest,
                request.size,
                request.text_or_stack,
                request.stream,
                request.pool == 0 && in_pool <= 0};
      } else if (request.kind == EventKind::kFree) {
        span.freed = std::min(span.freed, i);
      } else if (request.kind == EventKind::kRecordStream) {
        span.is_movable = false;
      }
    }
    ++i;
  }
  return spans;
}

ScheduleEdit::ScheduleEdit(const Schedule& schedule, absl::Span<const AllocationSpan> spans)
    : schedule_(schedule),
      spans_(spans),
      claimed_(spans.size()),
      is_gone_(schedule.requests().size()),
      next_id_(schedule.allocation_count()),
      end_(static_cast<uint32_t>(schedule.requests().size())) {}

bool ScheduleEdit::Claim(AllocationId id) {
  if (!spans_[id].is_movable || claimed_[id]) return false;
  claimed_[id] = true;
  ++changes_;
  return true;
}

void ScheduleEdit::FreeBefore(AllocationId id, uint32_t position) {
  const uint32_t freed = spans_[id].freed;
  if (freed != kNoRequest) is_gone_[freed] = true;
  if (position != kNoRequest) FreeNewBefore(id, position);
}

void ScheduleEdit::Drop(AllocationId id) {
  const AllocationSpan& span = spans_[id];
  is_gone_[span.made] = true;
  if (span.freed != kNoRequest) is_gone_[span.freed] = true;
}

AllocationId ScheduleEdit::MakeBefore(uint32_t position, AllocationId model, Bytes size) {
  Insert(position, {.kind = EventKind::kAlloc,
                    .id = next_id_,
                    .size = size,
                    .stream = spans_[model].stream,
                    .text_or_stack = spans_[model].stack});
  return next_id_++;
}

void ScheduleEdit::FreeNewBefore(AllocationId id, uint32_t position) {
  Insert(position, {.kind = EventKind::kFree, .id = id});
}

void ScheduleEdit::EmptyCacheBefore(uint32_t position) {
  Insert(position, {.kind = EventKind::kEmptyCache});
  ++changes_;
}

Schedule ScheduleEdit::Apply() const {
  std::vector<std::pair<uint32_t, uint32_t>> order;  // position, index in `own`
  std::vector<Event> own;
  order.reserve(inserted_.size());
  own.reserve(inserted_.size());
  for (const auto& [position, event] : inserted_) {
    order.emplace_back(position, static_cast<uint32_t>(own.size()));
    own.push_back(event);
  }
  std::sort(order.begin(), order.end());
  std::vector<uint32_t> from;
  from.reserve(is_gone_.size() + own.size());
  size_t next = 0;
  for (uint32_t i = 0; i < end_; ++i) {
    for (; next < order.size() && order[next].first <= i; ++next) {
      from.push_back(RequestView::kOwn | order[next].second);
    }
    if (!is_gone_[i]) from.push_back(i);
  }
  if (end_ == is_gone_.size()) {
    for (; next < order.size(); ++next) from.push_back(RequestView::kOwn | order[next].second);
  }
  return schedule_.WithRequests(from, own, next_id_);
}

}  // namespace memreplay

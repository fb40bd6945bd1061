// The events and requests of a schedule. The trace holds them; a schedule only adds what it
// inferred, so that nothing is stored twice.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "trace/value/event.h"
#include "trace/value/event_list.h"

namespace memreplay {

// All events of a file with dense ids, and with inferred pools if the file does not name them.
// Valid as long as the objects it was created from.
class EventView {
 public:
  // Ids or pools that are null are the events' own.
  explicit EventView(const EventList& events, const AllocationId* ids = nullptr,
                     const uint16_t* pools = nullptr)
      : list_(&events),
        events_(events.source() == nullptr ? events.kept().data() : nullptr),
        size_(events.size()),
        ids_(ids),
        pools_(pools) {}
  EventView() = default;

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  [[gnu::always_inline]] Event operator[](size_t i) const {
    Event event;
    if (events_ == nullptr) [[unlikely]] {
      // A copy, so that what is read from memory need not be written there.
      const Event made = list_->MadeAgain(i);
      event = made;
      return event;
    }
    event = events_[i];
    if (ids_ != nullptr) event.id = ids_[i];
    if (pools_ != nullptr) event.pool = pools_[i];
    return event;
  }
  // Returns the dense id; kNoAllocation if events are expanded again.
  AllocationId id(size_t i) const { return ids_ != nullptr ? ids_[i] : kNoAllocation; }
  EventKind kind(size_t i) const { return events_ != nullptr ? events_[i].kind : (*this)[i].kind; }
  EventIterator<EventView> begin() const { return {*this, 0}; }
  EventIterator<EventView> end() const { return {*this, size()}; }

 private:
  const EventList* list_ = nullptr;
  const Event* events_ = nullptr;  // null: expanded again
  size_t size_ = 0;
  const AllocationId* ids_ = nullptr;
  const uint16_t* pools_ = nullptr;
};

// The input of an allocator. Most requests are an event of the file, without what the allocator
// itself determines; the others are the schedule's own.
class RequestView {
 public:
  // A bit of `from` that marks the schedule's own requests; the other bits are an index into `own`.
  static constexpr uint32_t kOwn = uint32_t{1} << 31;

  RequestView(EventView events, absl::Span<const uint32_t> from, const Event* own)
      : events_(events), from_(from.data()), size_(from.size()), own_(own) {}
  // Views every event as a request, for a program that is expanded again.
  explicit RequestView(EventView events) : events_(events), size_(events.size()) {}

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  [[gnu::always_inline]] Event operator[](size_t i) const {
    if (from_ == nullptr) [[unlikely]] {
      Event event = AsRequest(events_[i]);
      if (event.is_mark(MarkKind::kRetag)) event.address = Address();
      return event;
    }
    const uint32_t from = from_[i];
    if ((from & kOwn) != 0) [[unlikely]] {
      return own_[from & ~kOwn];
    }
    return AsRequest(events_[from]);
  }
  // Returns the id of a request that is an event of the file; otherwise kNoAllocation.
  AllocationId id(size_t i) const {
    if (from_ == nullptr || (from_[i] & kOwn) != 0) [[unlikely]] {
      return kNoAllocation;
    }
    return events_.id(from_[i]);
  }
  EventIterator<RequestView> begin() const { return {*this, 0}; }
  EventIterator<RequestView> end() const { return {*this, size()}; }

  // Returns a recorded event as a request: an oom stands for the refused alloc, and a completion
  // without a free for that free.
  static Event AsRequest(Event event) {
    if (event.kind == EventKind::kOom) {
      event.kind = EventKind::kAlloc;
    } else if (event.kind == EventKind::kFreeCompleted) {
      event.kind = EventKind::kFree;
    }
    if (event.kind != EventKind::kMark) event.address = Address();
    event.block_size = Bytes();
    return event;
  }

 private:
  EventView events_;
  const uint32_t* from_ = nullptr;
  size_t size_;
  const Event* own_ = nullptr;
};

}  // namespace memreplay

// The events of a device. Those of a file are kept; those of a long schedule are expanded again for
// each reader, so that their number costs no memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "trace/value/check.h"
#include "trace/value/event.h"

namespace memreplay {

// A source that produces the same events each time. Thread-safe.
class EventSource {
 public:
  // A position in the events that moves forward.
  class Cursor {
   public:
    virtual ~Cursor() = default;
    virtual uint64_t position() const = 0;  // of the next event
    virtual Event Next() = 0;               // requires a next event
  };
  // An allocation that is never freed.
  struct Leak {
    uint64_t event = 0;
    uint64_t handle = 0;
  };

  virtual ~EventSource() = default;
  virtual uint64_t size() const = 0;
  virtual uint32_t allocation_count() const = 0;  // upper bound of Event::id
  virtual const std::vector<Leak>& leaks() const = 0;
  // Returns a cursor at or before `position`. Its events have dense ids in the order of the
  // allocations.
  virtual std::unique_ptr<Cursor> CursorBefore(uint64_t position) const = 0;
  // Returns the position at which CursorBefore(position) starts.
  virtual uint64_t NearestStart(uint64_t position) const = 0;
};

// An iterator over a view, which produces events on demand.
template <typename View>
class EventIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = Event;
  using difference_type = std::ptrdiff_t;
  using pointer = const Event*;
  using reference = Event;

  EventIterator(const View& view, size_t at) : view_(view), at_(at) {}
  Event operator*() const { return view_[at_]; }
  EventIterator& operator++() {
    ++at_;
    return *this;
  }
  EventIterator operator++(int) { return {view_, at_++}; }
  friend difference_type operator-(const EventIterator& a, const EventIterator& b) {
    return static_cast<difference_type>(a.at_ - b.at_);
  }
  friend bool operator==(const EventIterator& a, const EventIterator& b) { return a.at_ == b.at_; }

 private:
  View view_;
  size_t at_;
};

// Events that read like a vector. Functions that change events require kept ones.
class EventList {
  struct View {
    const EventList* list;
    Event operator[](size_t i) const { return (*list)[i]; }
  };

 public:
  using const_iterator = EventIterator<View>;

  EventList() = default;
  EventList(std::vector<Event> events) : kept_(std::move(events)) {}  // NOLINT: converts
  EventList(std::initializer_list<Event> events) : kept_(events) {}
  explicit EventList(std::shared_ptr<const EventSource> source) : source_(std::move(source)) {}

  size_t size() const { return source_ == nullptr ? kept_.size() : source_->size(); }
  bool empty() const { return size() == 0; }
  // Returns an event as it is in the file, without an id that the file lacks. O(1) for kept events;
  // otherwise amortised O(1) for each of two readers per thread that go through the events in
  // order, and more for a step back.
  Event operator[](size_t i) const {
    if (source_ == nullptr) [[likely]] {
      return kept_[i];
    }
    Event event = MadeAgain(i);
    event.id = kNoAllocation;
    return event;
  }
  const_iterator begin() const { return {{this}, 0}; }
  const_iterator end() const { return {{this}, size()}; }

  // Returns null if the events are kept.
  const EventSource* source() const { return source_.get(); }
  // Returns an event of the source, with its id.
  Event MadeAgain(size_t i) const;

  // Returns the events; the process stops if they are not kept.
  absl::Span<const Event> kept() const {
    CheckKept();
    return kept_;
  }
  std::vector<Event>& kept() {
    CheckKept();
    return kept_;
  }
  Event& operator[](size_t i) { return kept()[i]; }
  Event* begin() { return kept().data(); }
  Event* end() { return kept().data() + kept_.size(); }
  void push_back(const Event& event) { kept().push_back(event); }
  Event& emplace_back() { return kept().emplace_back(); }
  void clear() { *this = EventList(); }

 private:
  void CheckKept() const { MEMREPLAY_CHECK(source_ == nullptr, "events are kept"); }

  std::vector<Event> kept_;
  std::shared_ptr<const EventSource> source_;
};

}  // namespace memreplay

#include "trace/value/event_list.h"

#include <algorithm>
#include <array>

namespace memreplay {
namespace {

// The number of events expanded at a time, which fit into a processor's L2 cache.
constexpr size_t kWindow = 4096;

// The position of a reader of a source in this thread.
struct Window {
  std::shared_ptr<const EventSource> source;
  uint64_t begin = 0;
  std::vector<Event> events;
  std::unique_ptr<EventSource::Cursor> cursor;
  uint64_t last_use = 0;
};

// Returns the two windows of a thread: one for a run, and one for code that reads its requests at
// the same time.
std::array<Window, 2>& Windows() {
  static thread_local std::array<Window, 2> windows;
  return windows;
}

// Fills the window with the events around `i`.
void Fill(Window& window, std::shared_ptr<const EventSource> source, size_t i) {
  const uint64_t begin = i / kWindow * kWindow;
  if (window.source != source || window.cursor == nullptr || window.cursor->position() > begin ||
      window.cursor->position() < source->NearestStart(begin)) {
    window.cursor = source->CursorBefore(begin);
  }
  window.source = std::move(source);
  window.begin = begin;
  while (window.cursor->position() < begin) window.cursor->Next();
  window.events.resize(std::min<uint64_t>(kWindow, window.source->size() - begin));
  for (Event& event : window.events) event = window.cursor->Next();
}

}  // namespace

Event EventList::MadeAgain(size_t i) const {
  static thread_local uint64_t uses = 0;
  Window* use = nullptr;
  for (Window& window : Windows()) {
    if (window.source != source_) continue;
    if (i - window.begin < window.events.size()) return window.events[i - window.begin];
    if (window.begin + window.events.size() == i) use = &window;  // continues in order
  }
  if (use == nullptr) {
    use = &*std::min_element(
        Windows().begin(), Windows().end(),
        [](const Window& a, const Window& b) { return a.last_use < b.last_use; });
  }
  use->last_use = ++uses;
  Fill(*use, source_, i);
  return use->events[i - use->begin];
}

}  // namespace memreplay

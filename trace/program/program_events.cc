#include "trace/program/program_events.h"

#include <algorithm>
#include <utility>

#include "trace/value/check.h"
#include "trace/value/status_macros.h"

namespace memreplay::program {
namespace {

class ProgramCursor final : public EventSource::Cursor {
 public:
  ProgramCursor(const ProgramExpander& expander, uint64_t position)
      : expander_(expander), position_(position) {}

  uint64_t position() const override { return position_; }
  Event Next() override {
    Event event;
    MEMREPLAY_CHECK(expander_.Next(&event), "a program has as many events each time");
    ++position_;
    if (event.stream == ProgramExpander::kNoStream) event.stream = 0;
    return event;
  }

 private:
  ProgramExpander expander_;
  uint64_t position_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const ProgramEvents>> ProgramEvents::Make(ProgramCode code) {
  std::shared_ptr<ProgramEvents> events(new ProgramEvents(std::move(code)));
  RETURN_IF_ERROR(events->Expand());
  return events;
}

absl::Status ProgramEvents::Expand() {
  ProgramExpander expander(&code_, &strings_, &stacks_);
  uint64_t between = kMinBetweenStarts;
  size_t bytes = 0;
  Event event;
  do {
    if (size_ % between == 0) {
      starts_.push_back(std::make_unique<Start>(Start{size_, expander.Again()}));
      bytes += starts_.back()->expander.bytes();
    }
    while (starts_.size() > 1 && (starts_.size() > kMaxStarts || bytes > kMaxBytes)) {
      between *= 2;
      std::erase_if(starts_, [&](const auto& start) { return start->position % between != 0; });
      bytes = 0;
      for (const auto& start : starts_) bytes += start->expander.bytes();
    }
  } while (expander.Next(&event) && ++size_ > 0);
  RETURN_IF_ERROR(expander.status());
  allocation_count_ = expander.allocations();
  expander.VisitLive([this](const ProgramExpander::Live& live) {
    leaks_.push_back({live.event, live.handle});
  });
  std::sort(leaks_.begin(), leaks_.end(),
            [](const Leak& a, const Leak& b) { return a.event < b.event; });
  return absl::OkStatus();
}

const ProgramEvents::Start& ProgramEvents::Before(uint64_t position) const {
  const auto after =
      std::upper_bound(starts_.begin(), starts_.end(), position,
                       [](uint64_t wanted, const auto& start) { return wanted < start->position; });
  return **(after - 1);  // the first one begins at 0
}

uint64_t ProgramEvents::NearestStart(uint64_t position) const { return Before(position).position; }

std::unique_ptr<EventSource::Cursor> ProgramEvents::CursorBefore(uint64_t position) const {
  const Start& start = Before(position);
  return std::make_unique<ProgramCursor>(start.expander, start.position);
}

void ProgramEvents::AddTexts(StringTable* strings, StackTable* stacks) const {
  for (uint32_t i = 0; i < strings_.size(); ++i) {
    MEMREPLAY_CHECK(strings->Intern(strings_[i]) == i, "texts have the same numbers");
  }
  for (uint32_t i = 0; i < stacks_.frame_count(); ++i) stacks->InternFrame(stacks_.frame(i));
  for (uint32_t i = 0; i < stacks_.size(); ++i) {
    MEMREPLAY_CHECK(stacks->InternStack(stacks_[i]) == i, "stacks have the same numbers");
  }
}

}  // namespace memreplay::program

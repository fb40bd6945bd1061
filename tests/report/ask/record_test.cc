#include <gtest/gtest.h>

#include "report/ask/replay.h"

namespace memreplay {
namespace {

// A mark, an allocation by train.py:7, a mark, two without a stack.
Trace BackwardTrace() {
  Trace trace;
  const Frame frame{trace.strings.Intern("train.py"), trace.strings.Intern("step"), 7};
  const uint32_t stack = trace.stacks.InternStack({trace.stacks.InternFrame(frame)});
  DeviceTrace& device = trace.devices.emplace_back();
  for (const EventKind kind : {EventKind::kMark, EventKind::kSegmentAlloc, EventKind::kMark,
                               EventKind::kSegmentAlloc, EventKind::kSegmentAlloc}) {
    Event event;
    event.kind = kind;
    event.text_or_stack = kind == EventKind::kMark    ? trace.strings.Intern("mark")
                          : device.events.size() == 1 ? stack
                                                      : kNoStack;
    device.events.push_back(event);
  }
  return trace;
}

proto::RecordedReplay PeakAt(const Trace& trace, int64_t event) {
  proto::DeviceReport device;
  device.mutable_categories()->set_peak_event(event);
  StackNames names(trace);
  return RecordedReplayOf(trace, names, 0, device);
}

TEST(RecordedReplay, NamesWhoAskedAtThePeak) {
  const proto::RecordedReplay replay = PeakAt(BackwardTrace(), 1);
  EXPECT_EQ(replay.peak_stack(), "train.py:7 step");
  EXPECT_EQ(replay.stack_before(), "");
}

TEST(RecordedReplay, NamesTheLastKnownStackWhereThePeakHasNone) {
  const proto::RecordedReplay replay = PeakAt(BackwardTrace(), 4);
  EXPECT_EQ(replay.peak_stack(), "");
  EXPECT_EQ(replay.stack_before(), "train.py:7 step");
  EXPECT_EQ(replay.events_since(), 3);
}

TEST(RecordedReplay, SaysNothingWhereNoStackIsKnown) {
  for (const int64_t event : {-1, 0, 5}) {
    const proto::RecordedReplay replay = PeakAt(BackwardTrace(), event);
    EXPECT_EQ(replay.peak_stack() + replay.stack_before(), "") << event;
  }
}

}  // namespace
}  // namespace memreplay

#include "report/device/event_log.h"

#include <gtest/gtest.h>

#include <string>

namespace memreplay {
namespace {

Event MakeEvent(EventKind kind, uint64_t address, uint64_t size, uint32_t stream = 0) {
  Event event;
  event.kind = kind;
  event.address = Address(address);
  event.size = Bytes(size);
  event.stream = stream;
  return event;
}

TEST(EventLog, WritesPyTorchsKeysInOrder) {
  std::string text;
  {
    EventLog log({StreamHandle(0), StreamHandle(94577)},
                 [&text](std::string_view piece) { text += piece; });
    log.OnEvent(MakeEvent(EventKind::kSegmentAlloc, 0x7f0000000000, 2097152));
    log.OnEvent(MakeEvent(EventKind::kAlloc, 0x7f0000000000, 100, 1));
    log.OnEvent(MakeEvent(EventKind::kFree, 0x7f0000000000, 100, 1));
    log.OnEvent(MakeEvent(EventKind::kFreeCompleted, 0x7f0000000000, 100, 1));
    log.OnEvent(MakeEvent(EventKind::kOom, 264634368, 402653184));
    log.OnEvent(MakeEvent(EventKind::kSnapshot, 0, 18446744073709551615u));
  }
  EXPECT_EQ(text,
            R"({"action":"segment_alloc","addr":139637976727552,"size":2097152,"stream":0}
{"action":"alloc","addr":139637976727552,"size":100,"stream":94577}
{"action":"free_requested","addr":139637976727552,"size":100,"stream":94577}
{"action":"free_completed","addr":139637976727552,"size":100,"stream":94577}
{"action":"oom","device_free":264634368,"size":402653184,"stream":0}
{"action":"snapshot","addr":0,"size":18446744073709551615,"stream":0}
)");
}

TEST(EventLog, LeavesOutWhatPyTorchDoesNotRecord) {
  std::string text;
  {
    EventLog log({}, [&text](std::string_view piece) { text += piece; });
    for (const EventKind kind :
         {EventKind::kRecordStream, EventKind::kStreamDone, EventKind::kEmptyCache,
          EventKind::kMark, EventKind::kSettings, EventKind::kFraction, EventKind::kFailNext,
          EventKind::kPoolBegin, EventKind::kPoolEnd, EventKind::kPoolRelease,
          EventKind::kResetPeak, EventKind::kOutsideAlloc, EventKind::kOutsideFree}) {
      log.OnEvent(MakeEvent(kind, 0, 1));
    }
  }
  EXPECT_EQ(text, "");
}

TEST(EventLog, NamesTheDeviceWhereAsked) {
  std::string text;
  {
    EventLog log(
        {}, [&text](std::string_view piece) { text += piece; }, 3);
    log.OnEvent(MakeEvent(EventKind::kSegmentMap, 2, 1, 7));
  }
  EXPECT_EQ(text, "{\"action\":\"segment_map\",\"addr\":2,\"size\":1,\"stream\":7,\"device\":3}\n");
}

TEST(EventLog, HandsOverLargeLogsInPieces) {
  size_t pieces = 0;
  size_t lines = 0;
  {
    EventLog log({}, [&](std::string_view piece) {
      ++pieces;
      for (const char c : piece) lines += c == '\n';
    });
    for (int i = 0; i < 10000; ++i) log.OnEvent(MakeEvent(EventKind::kAlloc, i, i));
  }
  EXPECT_GT(pieces, 1u);
  EXPECT_EQ(lines, 10000u);
}

}  // namespace
}  // namespace memreplay

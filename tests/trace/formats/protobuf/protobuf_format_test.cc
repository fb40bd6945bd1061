#include "trace/formats/protobuf/protobuf_format.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>

#include "tests/trace/formats/contract/format_contract.h"
#include "tests/trace/support/trace_dump.h"

namespace memreplay {
namespace {

using testing::DumpTrace;
using testing::TraceFormat;

constexpr TraceFormat kFormat = {ReadProtobufTrace, WriteProtobufTrace, "byte "};

absl::StatusOr<Trace> Read(std::string bytes) { return kFormat.Read(std::move(bytes)); }
std::string Write(const Trace& trace) { return kFormat.Write(trace); }
std::string ErrorOf(std::string bytes) { return kFormat.ErrorOf(std::move(bytes)); }

std::string Magic(char version = 1) {
  return std::string(kProtobufMagic) + version + std::string(3, '\0');
}

TEST(ProtobufFormatTest, LongListsAreCutIntoRecords) {
  Trace trace = testing::SnapshotTrace();
  std::mt19937_64 random(3);
  for (int i = 0; i < 20000; ++i) {
    Event event;
    event.kind = EventKind::kAlloc;
    event.address = Address(random());
    event.size = Bytes(random());
    const uint32_t text = trace.strings.Intern(std::string(random() % 50, 'x') + std::to_string(i));
    const uint32_t frame = trace.stacks.InternFrame({text, text, static_cast<uint32_t>(i)});
    event.text_or_stack = trace.stacks.InternStack({frame, frame});
    trace.devices[1].events.push_back(event);
    trace.devices[1].time_us.push_back(static_cast<int64_t>(random()));
    BlockInfo block;
    block.size = Bytes(i);
    trace.devices[1].final_state[0].blocks.push_back(block);
  }
  const auto again = Read(Write(trace));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(DumpTrace(*again), DumpTrace(trace));
}

TEST(ProtobufFormatTest, IsToldFromItsFirstBytes) {
  EXPECT_TRUE(LooksLikeProtobufTrace(Magic()));
  EXPECT_FALSE(LooksLikeProtobufTrace(Magic().substr(0, 7)));
  EXPECT_FALSE(LooksLikeProtobufTrace("\x80\x04"));
}

TEST(ProtobufFormatTest, EveryCutIsNoticed) {
  const std::string bytes = Write(testing::SnapshotTrace());
  for (size_t length = 1; length < bytes.size(); ++length) {
    EXPECT_FALSE(Read(bytes.substr(0, length)).ok()) << length;
  }
}

TEST(ProtobufFormatTest, ErrorsSayWhereWhatWasExpectedAndFound) {
  EXPECT_EQ(ErrorOf(Magic(2)), "byte 0: expected version 1, found version 2");
  EXPECT_EQ(ErrorOf(Magic()), "byte 12: expected a record, found the end of the file");
  EXPECT_EQ(ErrorOf(Magic() + "\xff\xff\xff\xff\x7f"),
            "byte 12: expected a record of at most 8388608 bytes, found one of 34359738367");
  EXPECT_EQ(ErrorOf(Magic() + "\xff\xff\xff\xff\xff\x01"),
            "byte 12: expected a record, found a length over 5 bytes");
  EXPECT_EQ(ErrorOf(Magic() + "\x05\x0a"),
            "byte 12: expected a record of 5 bytes, found the end of the file");
  EXPECT_EQ(ErrorOf(Magic() + "\x02\xff\xff"),
            "byte 12: expected a record of proto/trace.proto, found other bytes");
  EXPECT_EQ(ErrorOf(Magic() + std::string("\x02\x5a\x00", 3)),
            "byte 12: expected the header as the first record, found another record");
  // An empty header, then an end that claims one event.
  EXPECT_EQ(ErrorOf(Magic() + std::string("\x02\x0a\x00\x04\x5a\x02\x08\x01", 8)),
            "byte 15: expected 1 events before the end, found 0");
  EXPECT_EQ(ErrorOf(Magic() + std::string("\x02\x0a\x00\x02\x5a\x00\x00", 7)),
            "byte 18: expected the end of the file after its last record, found more bytes");
  // Events before any device.
  EXPECT_EQ(ErrorOf(Magic() + std::string("\x02\x0a\x00\x02\x32\x00", 6)),
            "byte 15: expected a device before its events, found none");
}

}  // namespace

namespace testing {
INSTANTIATE_TEST_SUITE_P(Protobuf, FormatContractTest, ::testing::Values(kFormat));
}  // namespace testing
}  // namespace memreplay

#include <gtest/gtest.h>

#include "trace/formats/op_log/op_log_reader.h"

namespace memreplay {
namespace {

absl::StatusOr<Trace> Read(std::string text) {
  auto source = ByteSource::FromBytes(std::move(text));
  if (!source.ok()) return source.status();
  return ReadOpLog(**source);
}

std::string ErrorOf(std::string text) {
  return std::string(Read(std::move(text)).status().message());
}

TEST(OpLogTest, ReadsAllocationsAndFrees) {
  const auto trace = Read("0 512\n7\t100000000000\r\n\n0 -512\n18446744073709551615 1");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_TRUE(trace->is_program);
  ASSERT_EQ(trace->devices.size(), 1u);
  const EventList& events = trace->devices[0].events;
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[1].kind, EventKind::kAlloc);
  EXPECT_EQ(events[1].address, Address(7));
  EXPECT_EQ(events[1].size, Bytes(100000000000));
  EXPECT_EQ(events[2].kind, EventKind::kFree);
  EXPECT_EQ(events[2].address, Address(0));
  EXPECT_EQ(events[2].size, Bytes(512));
  EXPECT_EQ(events[3].address, Address(18446744073709551615u));
}

TEST(OpLogTest, ErrorsSayWhere) {
  EXPECT_EQ(ErrorOf("0 512\n1\n"),
            "line 2, byte 7: expected a space after the id, found the end of the line");
  EXPECT_EQ(ErrorOf("0 512\n-1 512\n"),
            "line 2, byte 6: expected an id from 0 to 18446744073709551615, found '-1 512'");
  EXPECT_EQ(ErrorOf("0 0\n"),
            "line 1, byte 2: expected a size from 1 to 18446744073709551615, found '0'");
  EXPECT_EQ(ErrorOf("0 18446744073709551616\n"),
            "line 1, byte 2: expected a size from 1 to 18446744073709551615, found "
            "'18446744073709551616'");
  EXPECT_EQ(ErrorOf("0 5 x\n"), "line 1, byte 4: expected the end of the line, found 'x'");
}

TEST(OpLogTest, IsToldFromItsFirstLine) {
  EXPECT_TRUE(LooksLikeOpLog("0 512\n"));
  EXPECT_TRUE(LooksLikeOpLog("12 -512\r\nanything"));
  EXPECT_FALSE(LooksLikeOpLog(""));
  EXPECT_FALSE(LooksLikeOpLog("12\n"));
  EXPECT_FALSE(LooksLikeOpLog("1,2\n"));
  EXPECT_FALSE(LooksLikeOpLog("{\"k\":\"h\"}\n"));
}

}  // namespace
}  // namespace memreplay

#include "trace/formats/text/text_format.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/trace/formats/contract/format_contract.h"
#include "tests/trace/support/trace_dump.h"

namespace memreplay {
namespace {

using testing::TraceFormat;

constexpr TraceFormat kFormat = {ReadText, WriteText, "line "};

absl::StatusOr<Trace> Read(std::string bytes) { return kFormat.Read(std::move(bytes)); }
std::string Write(const Trace& trace) { return kFormat.Write(trace); }
std::string ErrorOf(std::string bytes) { return kFormat.ErrorOf(std::move(bytes)); }

TEST(TextFormatTest, PeopleCanWriteIt) {
  const auto trace = Read(R"(memreplay-text 1
# two streams
program

total 0x40000000
alloc #1 size=1024 stream=1 tag=activation name="the \"output\""
record_stream #1 stream=0
free #1 stream=1
mark text=it0.bwd
pool_begin pool=0,1
fail_next count=2
settings text="max_split_size_mb:64"
)");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(Write(*trace), R"(memreplay-text 1
program
streams 0 1
pools 0,1
total 1073741824
device 0
alloc #1 size=1024 stream=1 tag=activation name="the \"output\""
record_stream #1 stream=0
free_requested #1 stream=1
mark kind=phase text=it0.bwd
pool_begin pool=0,1
fail_next count=2
settings text=max_split_size_mb:64
)");
}

TEST(TextFormatTest, ShowsARecordedTrace) {
  const std::string text = Write(testing::SnapshotTrace());
  EXPECT_NE(text.find("frame 1 file=model.py line=12 name=forward\n"
                      "frame 2 file=train.py line=300 name=step\n"
                      "stack 1 1 2\n"
                      "segment_alloc 0x7f0000000000 size=2097152 stream=0 stack=1 "
                      "time=1700000000000003\n"
                      "alloc 0x7f0000000000 size=1000 stream=0 stack=1 time=1700000000000006\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("segment 0x7f0040000000 size=20971520 stream=94355079556672 pool=0,1 large "
                      "expandable\n"
                      "block 0x7f0040000000 size=20971520 requested=5000000000 "
                      "state=active_pending_free\n"),
            std::string::npos)
      << text;
}

TEST(TextFormatTest, IsToldFromItsFirstWord) {
  EXPECT_TRUE(LooksLikeText("memreplay-text 1\n"));
  EXPECT_FALSE(LooksLikeText("memreplay-texts 1\n"));
  EXPECT_FALSE(LooksLikeText("memreplay"));
}

TEST(TextFormatTest, ErrorsSayWhereWhatWasExpectedAndFound) {
  const std::string h = "memreplay-text 1\n";  // 17 bytes
  EXPECT_EQ(ErrorOf("alloc\n"), "line 1, byte 0: expected 'memreplay-text', found 'alloc'");
  EXPECT_EQ(ErrorOf("\n"),
            "line 2, byte 1: expected 'memreplay-text 1', found the end of the file");
  EXPECT_EQ(ErrorOf("memreplay-text 2\n"), "line 1, byte 15: expected version 1, found '2'");
  EXPECT_EQ(ErrorOf(h + "alloc #1 size=-5\n"),
            "line 2, byte 31: expected an integer from 0 to 18446744073709551615 for size, "
            "found '-5'");
  EXPECT_EQ(ErrorOf(h + "alloc #1 size=18446744073709551616\n"),
            "line 2, byte 31: expected an integer from 0 to 18446744073709551615 for size, "
            "found '18446744073709551616'");
  EXPECT_EQ(ErrorOf(h + "alloc #1 colour=5\n"),
            "line 2, byte 26: expected nothing more on the line, found 'colour='");
  EXPECT_EQ(ErrorOf(h + "alloc #1 #2\n"),
            "line 2, byte 26: expected nothing more on the line, found '#2'");
  EXPECT_EQ(ErrorOf(h + "alloc #1 size=1 size=2\n"),
            "line 2, byte 33: expected nothing more on the line, found 'size='");
  EXPECT_EQ(ErrorOf(h + "alloc one\n"),
            "line 2, byte 23: expected an address '0x...' or a handle '#...', found 'one'");
  EXPECT_EQ(ErrorOf(h + "allocate #1\n"),
            "line 2, byte 17: expected an action or another first word of docs/formats.md, "
            "found 'allocate'");
  EXPECT_EQ(ErrorOf(h + "mark text=\"a\n"),
            "line 2, byte 29: expected the closing quote of a string, found the end of the line");
  EXPECT_EQ(ErrorOf(h + "mark text=\"a\"b\n"),
            "line 2, byte 30: expected a space after a quote, found 'b'");
  EXPECT_EQ(ErrorOf(h + "mark text=\n"),
            "line 2, byte 27: expected a value after '=', found the end of the line");
  EXPECT_EQ(ErrorOf(h + "alloc #1 stack=1\n"),
            "line 2, byte 32: expected a stack defined on a line before for stack, found '1'");
  EXPECT_EQ(ErrorOf(h + "frame 2 file=a\n"), "line 2, byte 23: expected 1, found '2'");
  EXPECT_EQ(ErrorOf(h + "block 0x1\n"),
            "line 2, byte 17: expected a segment before its blocks, found none");
  EXPECT_EQ(ErrorOf(h + "fraction half\n"), "line 2, byte 26: expected a number, found 'half'");
}

}  // namespace

namespace testing {
INSTANTIATE_TEST_SUITE_P(Text, FormatContractTest, ::testing::Values(kFormat));
}  // namespace testing
}  // namespace memreplay

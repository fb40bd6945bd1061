#include "trace/formats/flat/flat_jsonl.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/trace/formats/contract/format_contract.h"
#include "tests/trace/support/trace_dump.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

using testing::DumpTrace;
using testing::TraceFormat;

constexpr TraceFormat kFormat = {ReadFlatJsonl, WriteFlatJsonl, "line "};

absl::StatusOr<Trace> Read(std::string bytes) { return kFormat.Read(std::move(bytes)); }
std::string Write(const Trace& trace) { return kFormat.Write(trace); }
std::string ErrorOf(std::string bytes) { return kFormat.ErrorOf(std::move(bytes)); }

constexpr char kHeader[] = "{\"k\":\"h\",\"format\":\"memsched-flat\",\"version\":1}   \n";

TEST(FlatJsonlTest, ReadsEveryRecordOfAProgram) {
  const auto trace =
      Read(R"({"k":"h","format":"memsched-flat","version":1,"unit":"B","streams":2,"devices":1,)"
           R"("config":{"B":[1,2]},"seed":7,"torch":"2.4.1","conf":"expandable_segments:True",)"
           R"("total":1073741824,"fraction":0.5,"completion":"explicit"}
{"k":"p","n":"it0.fwd1"}
{"k":"a","id":17,"b":12582912,"s":1,"d":0,"t":"activation","n":"h3.ln_1.out","dt":"f32","sh":[16,512,384]}
{"k":"u","id":17,"s":0}
{"k":"f","id":17}
{"k":"e","s":1,"ev":5}
{"k":"w","s":0,"ev":5}
{"k":"y","s":0}
{"k":"t","id":17,"t":"gradient"}
{"k":"c"}
{"k":"m","n":"label"}
{"k":"x","n":"reset_peak"}
{"k":"x","n":"reset_accumulated"}
{"k":"cp","p":[0,2],"oom":1,"nosplit":1}
{"k":"cx","p":[0,2]}
{"k":"X","b":1048576,"n":"nccl"}
{"k":"Xf","b":1048576,"n":"nccl"}
{"k":"done","s":1}
{"k":"conf","v":"max_split_size_mb:64"}
{"k":"frac","v":0.50}
{"k":"fail","n":2}
{"k":"bp","p":[0,1]}
{"k":"ep","p":[0,1]}
{"k":"rp","p":[0,1]}
)");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(DumpTrace(*trace),
            R"(is_program 1
streams 0 1
pools 0,0 0,2 0,1
layout 0
program_header {"config":{"B":[1,2]},"seed":7}
torch 2.4.1
total 1073741824
fraction 0x1p-1
explicit 1
settings <expandable_segments:True>
device 0 final 0
mark id=4294967295 address=0 size=0 block=0 stream=0 pool=0 <it0.fwd1>
alloc id=4294967295 address=17 size=12582912 block=0 stream=1 pool=0 )"
            R"([<activation>:0:<h3.ln_1.out> <memsched:tensor>:0:<"dt":"f32","sh":[16,512,384]> ]
record_stream id=4294967295 address=17 size=0 block=0 stream=0 pool=0 []
free_requested id=4294967295 address=17 size=0 block=0 stream=1 pool=0 []
mark id=4294967295 address=5 size=3 block=0 stream=1 pool=0 <>
mark id=4294967295 address=5 size=4 block=0 stream=0 pool=0 <>
stream_done id=4294967295 address=0 size=0 block=0 stream=0 pool=0 []
mark id=4294967295 address=17 size=2 block=0 stream=0 pool=0 <gradient>
empty_cache id=4294967295 address=0 size=0 block=0 stream=0 pool=0 []
mark id=4294967295 address=0 size=1 block=0 stream=0 pool=0 <label>
reset_peak id=4294967295 address=0 size=0 block=0 stream=0 pool=0 []
reset_accumulated id=4294967295 address=0 size=0 block=0 stream=0 pool=0 []
pool_create id=4294967295 address=0 size=3 block=0 stream=0 pool=1 []
pool_forget id=4294967295 address=0 size=0 block=0 stream=0 pool=1 []
outside_alloc id=4294967295 address=0 size=1048576 block=0 stream=0 pool=0 <nccl>
outside_free id=4294967295 address=0 size=1048576 block=0 stream=0 pool=0 [<>:0:<nccl> ]
stream_done id=4294967295 address=0 size=0 block=0 stream=1 pool=0 []
settings id=4294967295 address=0 size=0 block=0 stream=0 pool=0 <max_split_size_mb:64>
memory_fraction id=4294967295 address=0 size=0 block=0 stream=0 pool=0 <0.50>
fail_next id=4294967295 address=0 size=2 block=0 stream=0 pool=0 []
pool_begin id=4294967295 address=0 size=0 block=0 stream=0 pool=2 []
pool_end id=4294967295 address=0 size=0 block=0 stream=0 pool=2 []
pool_release id=4294967295 address=0 size=0 block=0 stream=0 pool=2 []
)");
  const auto again = Read(Write(*trace));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(DumpTrace(*again), DumpTrace(*trace));
}

TEST(FlatJsonlTest, FreesAndUsesFollowTheirAllocation) {
  const auto trace = Read(
      StrCat(kHeader,
             "{\"k\":\"a\",\"id\":1,\"b\":8,\"d\":1,\"s\":3}\n{\"k\":\"u\",\"id\":1,\"s\":0}\n"
             "{\"k\":\"f\",\"id\":1}\n{\"k\":\"a\",\"id\":1,\"b\":8}\n{\"k\":\"f\",\"id\":1}\n"));
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_EQ(trace->devices.size(), 2u);
  ASSERT_EQ(trace->devices[1].events.size(), 3u);
  EXPECT_EQ(trace->streams[trace->devices[1].events[2].stream], StreamHandle(3));
  ASSERT_EQ(trace->devices[0].events.size(), 2u);
  EXPECT_EQ(trace->streams[trace->devices[0].events[1].stream], StreamHandle(0));
}

TEST(FlatJsonlTest, RecordsForAllDevicesAreRepeated) {
  const auto trace = Read(
      "{\"k\":\"h\",\"format\":\"memsched-flat\",\"version\":1,\"devices\":3}\n"
      "{\"k\":\"c\"}\n{\"k\":\"c\",\"d\":1}\n{\"k\":\"frac\",\"v\":0.5}\n");
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_EQ(trace->devices.size(), 3u);
  EXPECT_EQ(trace->devices[0].events.size(), 2u);
  EXPECT_EQ(trace->devices[1].events.size(), 2u);
  EXPECT_EQ(trace->devices[2].events.size(), 1u);
}

TEST(FlatJsonlTest, TimesAreDifferencesOrAbsolute) {
  const auto trace = Read(StrCat(kHeader,
                                 "{\"k\":\"c\"}\n{\"k\":\"c\",\"dt_us\":10}\n{\"k\":\"c\"}\n"
                                 "{\"k\":\"c\",\"ts\":-5}\n"));
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->devices[0].time_us, (std::vector<int64_t>{1, 11, 12, -5}));
}

TEST(FlatJsonlTest, Keeps64BitNumbersExactly) {
  const auto trace =
      Read(StrCat(kHeader, "{\"k\":\"a\",\"id\":18446744073709551615,\"b\":9007199254740993}\n"));
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->devices[0].events[0].address, Address(18446744073709551615u));
  EXPECT_EQ(trace->devices[0].events[0].size, Bytes(9007199254740993u));
}

TEST(FlatJsonlTest, UnknownKeysAreCounted) {
  const auto trace = Read(StrCat(kHeader, "{\"k\":\"c\",\"colour\":{\"a\":[1]}}\n"));
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->diagnostics.count(DiagnosticKind::kUnknownKey), 1u);
  const auto place = trace->diagnostics.places(DiagnosticKind::kUnknownKey)[0];
  EXPECT_EQ(place.detail, "key 'colour'");
  EXPECT_EQ(place.position, sizeof(kHeader) - 1 + 18);
}

TEST(FlatJsonlTest, ErrorsSayWhereWhatWasExpectedAndFound) {
  const std::string h = kHeader;  // 50 bytes
  ASSERT_EQ(h.size(), 50u);
  EXPECT_EQ(ErrorOf(h + "{\"k\":\"a\",\"id\":1,\"b\":-5}\n"),
            "line 2, byte 70: expected an integer from 0 to 18446744073709551615 for \"b\", "
            "found -5");
  EXPECT_EQ(ErrorOf(h + "{\"k\":\"a\",\"id\":18446744073709551616,\"b\":5}\n"),
            "line 2, byte 64: expected an integer from 0 to 18446744073709551615 for \"id\", "
            "found 18446744073709551616");
  EXPECT_EQ(ErrorOf(h + "{\"k\":\"a\",\"id\":1,\"b\":5.0}\n"),
            "line 2, byte 70: expected an integer from 0 to 18446744073709551615 for \"b\", "
            "found 5.0");
  EXPECT_EQ(ErrorOf(h + "{\"k\":\"a\",\"id\":\"1\",\"b\":5}\n"),
            "line 2, byte 65: expected an integer from 0 to 18446744073709551615 for \"id\", "
            "found \"1\"");
  EXPECT_EQ(ErrorOf(h + "{\"k\":\"a\",\"id\":1}\n"),
            "line 2, byte 50: expected a member \"b\" in a record \"a\", found none");
  EXPECT_EQ(ErrorOf(h + "\n{\"k\":\"a\" \"id\":1}\n"),
            "line 3, byte 60: expected ',' or '}' after a member, found '\"'");
  EXPECT_EQ(ErrorOf(h + "{\"k\":\"c\"} x\n"),
            "line 2, byte 60: expected the end of the line, found 'x'");
  EXPECT_EQ(ErrorOf(h + "{\"k\":\"c\""),
            "line 2, byte 58: expected ',' or '}' after a member, found the end of the line");
  EXPECT_EQ(ErrorOf(h + "{\"k\":\"zz\"}"),
            "line 2, byte 56: expected a known record for \"k\", "
            "found \"zz\"");
  EXPECT_EQ(ErrorOf(h + "{\"id\":3}"), "line 2, byte 50: expected a member \"k\", found none");
  EXPECT_EQ(ErrorOf(h + "{\"k\":\"f\",\"id\":3,\"id\":4}"),
            "line 2, byte 71: expected each key once, found \"id\" again");
  EXPECT_EQ(ErrorOf(h + h),
            "line 2, byte 56: expected the header \"h\" on the first line only, "
            "found another");
  EXPECT_EQ(ErrorOf("{\"k\":\"h\",\"format\":\"memsched-flat\",\"version\":2}\n"),
            "line 1, byte 44: expected 1 for \"version\", found 2");
  EXPECT_EQ(ErrorOf(h + "{\"k\":\"x\",\"n\":\"reset\"}"),
            "line 2, byte 64: expected \"reset_peak\" or \"reset_accumulated\" for \"n\", found "
            "\"reset\"");
  EXPECT_EQ(ErrorOf(h + "{\"k\":\"a\",\"id\":1,\"b\":5,\"st\":1}"),
            "line 2, byte 77: expected a stack that an \"st\" record defined for \"st\", found 1");
  EXPECT_EQ(ErrorOf(h + "{\"k\":\"m\",\"n\":\"\\q\"}"),
            "line 2, byte 65: expected one of \"\\/bfnrtu after a backslash, found 'q'");
  EXPECT_EQ(ErrorOf(h + "{\"k\":\"m\",\"n\":" + std::string(100, '[')),
            "line 2, byte 126: expected at most 64 levels of nesting, found '['");
}

TEST(FlatJsonlTest, IsToldFromItsFirstLine) {
  EXPECT_TRUE(LooksLikeFlatJsonl(kHeader));
  EXPECT_TRUE(LooksLikeFlatJsonl("{\"format\": \"memsched-flat\", \"k\": \"h\""));
  EXPECT_TRUE(LooksLikeFlatJsonl("\n {\"id\":1,\"k\":\"a\",\"b\":5}\n"));
  EXPECT_FALSE(LooksLikeFlatJsonl(""));
  EXPECT_FALSE(LooksLikeFlatJsonl("{\"segments\": [{\"k\":\"a\"}], \"device_traces\": []}"));
  EXPECT_FALSE(LooksLikeFlatJsonl("{\"segments\":[\n{\"k\":\"a\"}"));
  EXPECT_FALSE(LooksLikeFlatJsonl("[{\"k\":\"a\"}]"));
  EXPECT_FALSE(LooksLikeFlatJsonl("{\"k\":5}"));
}

TEST(FlatJsonlTest, GoldenProgramsComeBackTheSame) {
  int found = 0;
  for (const char* name : {"gpt2_124M_bf16", "seedA_ckpt", "seedA_fp16_flash", "seedA_fp16_manual",
                           "seedA_fp32", "seedB_fp16_flash", "tiny_char"}) {
    std::string text = testing::ReadShared(StrCat("data/golden/", name, ".jsonl"));
    if (text.empty()) continue;
    ++found;
    size_t lines = 0;
    for (const char c : text) lines += c == '\n';
    const auto trace = Read(std::move(text));
    ASSERT_TRUE(trace.ok()) << name << ": " << trace.status();
    ASSERT_EQ(trace->devices.size(), 1u);
    EXPECT_EQ(trace->devices[0].events.size(), lines - 1);
    EXPECT_TRUE(trace->diagnostics.empty());
    const auto again = Read(Write(*trace));
    ASSERT_TRUE(again.ok()) << name << ": " << again.status();
    EXPECT_EQ(DumpTrace(*again), DumpTrace(*trace));
  }
  if (found == 0) GTEST_SKIP() << "the golden programs are not there (MEMREPLAY_SHARED)";
  EXPECT_EQ(found, 7);
}

}  // namespace

namespace testing {
INSTANTIATE_TEST_SUITE_P(FlatJsonl, FormatContractTest, ::testing::Values(kFormat));
}  // namespace testing
}  // namespace memreplay

// Tests programs and what they expand to, small enough to be checked by hand.
#include "trace/program/program_reader.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/trace/support/trace_dump.h"
#include "trace/formats/flat/flat_jsonl.h"
#include "trace/program/program_expander.h"
#include "trace/value/strings.h"

namespace memreplay::program {
namespace {

// What follows the first two lines of a program.
std::string Program(const std::string& rest) { return "format: \"memsched\"\nversion: 1\n" + rest; }

absl::StatusOr<Trace> Read(const std::string& bytes, const CompileOptions& options = {}) {
  auto source = ByteSource::FromBytes(bytes);
  if (!source.ok()) return source.status();
  const absl::StatusOr<ProgramCode> code = ReadProgramCode(**source, options);
  if (!code.ok()) return code.status();
  return ExpandProgram(*code);
}

std::string Error(const std::string& bytes, const CompileOptions& options = {}) {
  const absl::StatusOr<Trace> trace = Read(bytes, options);
  return trace.ok() ? "none" : std::string(trace.status().message());
}

std::string Flat(const std::string& lines) {
  auto source = ByteSource::FromBytes(lines);
  const absl::StatusOr<Trace> trace = ReadFlatJsonl(**source);
  EXPECT_TRUE(trace.ok()) << trace.status();
  return memreplay::testing::DumpTrace(*trace);
}

// Returns the sizes of the allocations, in order.
std::string Sizes(const std::string& bytes, const CompileOptions& options = {}) {
  const absl::StatusOr<Trace> trace = Read(bytes, options);
  if (!trace.ok()) return std::string(trace.status().message());
  std::string sizes;
  for (const Event& event : trace->devices[0].events) {
    if (event.kind == EventKind::kAlloc) StrAppend(&sizes, event.size.value(), " ");
  }
  return sizes;
}

constexpr char kEveryStatement[] = R"program(
meta { key: "name" value: "every statement" }
device { name: "a card" total: 1073741824 context: 1000 other: 2000 cc: "8.9" }
params { key: "B" value: 4 }
derived { key: "N" value: "twice*512" }
derived { key: "twice" value: "2*B" }
streams: ["main", "comm"]
pools { name: "graph" }
pools { name: "mem" mem_pool: true }
seed: 7
conf: "max_split_size_mb:64"
fraction: 0.5
completion: "explicit"
procs {
  key: "layer"
  value {
    args: ["l", "size"]
    body {
      alloc: "act[l]" bytes: "size" tag: "activation" site: "h{l}.out"
      dtype: "f16" shape: ["B", "size/B"] saved: true
    }
    body { if: "l > 0" then { mark: "layer {l}" } else { mark: "first {{" } }
  }
}
program { alloc: "before" bytes: "B" }
program {
  phase: "it"
  body {
    repeat: "2"
    index: "ms"
    body {
      phase: "fwd{ms}"
      body { call: "layer" with { key: "l" value: "ms" } with { key: "size" value: "N + 4*ms" } }
    }
  }
  body { temp: "scratch" bytes: "100" tag: "workspace" stream: "comm" body { use: "scratch" stream: "main" } }
  body { let: "n" value: "1" }
  body { let: "n" value: "n + 1" }
  body { for: "l" range: ["n - 1", "-1"] body { retag: "act[l]" tag: "gradient" } }
  body { move: "act[1]" to: "act[0]" }
  body { for: "l" range: ["0", "5", "4"] body { alloc: "loop[l]" bytes: "l" } }
  body { foreach: "s" values: ["3*B", "1"] body { alloc: "each[s]" bytes: "s" stream: "s % 2" } }
}
program { event: "ready[1]" stream: "comm" }
program { wait: "ready[1]" }
program { done: "comm" }
program { free: "before" stream: "1" }
program { outside: "nccl" bytes: "1MiB" site: "NCCL" }
program { outside_free: "nccl" }
program { empty_cache: true }
program { reset: "peak" }
program { reset: "accumulated" }
program { conf: "garbage_collection_threshold:0.{B}" }
program { fraction: "0.25" }
program { fail_next: "B - 2" }
program { pool: "graph" body { alloc: "captured" bytes: "8" } }
program { pool_release: "graph" }
program { pool_create: "mem" serves_on_oom: true no_split: true }
program { pool_forget: "mem" }
program {
  let: "drawn"
  from { dist: "choice" values: "77" }
}
program { alloc: "drawn" bytes: "drawn" }
program {
  random {
    ops: "2"
    size { dist: "uniform" min: "5" max: "5" }
    lifetime { dist: "uniform" min: "1" max: "1" }
    tag: "load"
  }
}
)program";

// Written by hand, following docs/formats.md.
constexpr char kEveryStatementFlat[] =
    R"({"k":"h","format":"memsched-flat","version":1,"unit":"B","streams":2,"devices":1,)"
    R"("conf":"max_split_size_mb:64","total":1073741824,"fraction":0.5,)"
    R"("completion":"explicit","pool_table":[[1,0],[0,1]],)"
    R"("config":{"B":4},"seed":7,"meta":{"cc":"8.9","device":"a card","name":"every statement"}}
{"k":"X","b":1000,"n":"CUDA context"}
{"k":"X","b":2000,"n":"other processes"}
{"k":"a","id":1,"b":4,"n":"before"}
{"k":"p","n":"it.fwd0"}
{"k":"a","id":2,"b":4096,"t":"activation","n":"h0.out","dt":"f16","sh":[4,1024],"saved":true}
{"k":"m","n":"first {"}
{"k":"p","n":"it.fwd1"}
{"k":"a","id":3,"b":4100,"t":"activation","n":"h1.out","dt":"f16","sh":[4,1025],"saved":true}
{"k":"m","n":"layer 1"}
{"k":"p","n":"it"}
{"k":"a","id":4,"b":100,"s":1,"t":"workspace","n":"scratch"}
{"k":"u","id":4,"s":0}
{"k":"f","id":4,"s":1}
{"k":"t","id":3,"t":"gradient"}
{"k":"t","id":2,"t":"gradient"}
{"k":"f","id":2,"s":0}
{"k":"a","id":5,"b":0,"n":"loop[l]"}
{"k":"a","id":6,"b":4,"n":"loop[l]"}
{"k":"a","id":7,"b":12,"s":0,"n":"each[s]"}
{"k":"a","id":8,"b":1,"s":1,"n":"each[s]"}
{"k":"p","n":"-"}
{"k":"e","s":1,"ev":1}
{"k":"w","s":0,"ev":1}
{"k":"done","s":1}
{"k":"f","id":1,"s":1}
{"k":"X","id":9,"b":1048576,"n":"NCCL"}
{"k":"Xf","id":9,"b":1048576}
{"k":"c"}
{"k":"x","n":"reset_peak"}
{"k":"x","n":"reset_accumulated"}
{"k":"conf","v":"garbage_collection_threshold:0.4"}
{"k":"frac","v":0.25}
{"k":"fail","n":2}
{"k":"bp","p":[1,0]}
{"k":"a","id":10,"b":8,"n":"captured"}
{"k":"ep","p":[1,0]}
{"k":"rp","p":[1,0]}
{"k":"cp","p":[0,1],"oom":1,"nosplit":1}
{"k":"cx","p":[0,1]}
{"k":"a","id":11,"b":77,"n":"drawn"}
{"k":"a","id":12,"b":5,"t":"load","n":"random"}
{"k":"f","id":12,"s":0}
{"k":"a","id":13,"b":5,"t":"load","n":"random"}
{"k":"f","id":13,"s":0}
)";

TEST(ProgramReader, ExpandsEveryStatement) {
  const absl::StatusOr<Trace> trace = Read(Program(kEveryStatement));
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(memreplay::testing::DumpTrace(*trace), Flat(kEveryStatementFlat));
}

// protobuf's JSON of the same schema; the example of the format's description.
TEST(ProgramReader, ReadsJson) {
  const absl::StatusOr<Trace> trace = Read(R"json({
    "format": "memsched", "version": 1,
    "params": {"B": 2, "L": 2},
    "streams": ["main", "comm"],
    "procs": {"block_fwd": {"args": ["l"], "body": [
      {"alloc": "qkv[l]", "bytes": "3*B", "tag": "activation", "site": "attn.c_attn mm"},
      {"temp": "lnout", "bytes": "4*B", "body": [{"mark": "norm"}]}]}},
    "program": [{"phase": "fwd", "body": [
      {"for": "l", "range": ["0", "L"], "body": [{"call": "block_fwd", "with": {"l": "l"}}]},
      {"if": "B % 2 == 0", "then": [{"empty_cache": true}], "else": [{"mark": "odd"}]}]}]})json");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(
      memreplay::testing::DumpTrace(*trace),
      Flat(
          R"({"k":"h","format":"memsched-flat","version":1,"streams":2,"config":{"B":2,"L":2},"seed":0}
{"k":"p","n":"fwd"}
{"k":"a","id":1,"b":6,"t":"activation","n":"attn.c_attn mm"}
{"k":"a","id":2,"b":8,"n":"lnout"}
{"k":"m","n":"norm"}
{"k":"f","id":2}
{"k":"a","id":3,"b":6,"t":"activation","n":"attn.c_attn mm"}
{"k":"a","id":4,"b":8,"n":"lnout"}
{"k":"m","n":"norm"}
{"k":"f","id":4}
{"k":"c"}
)"));
}

TEST(ProgramReader, IsToldFromItsBeginning) {
  EXPECT_TRUE(LooksLikeProgramText("# one\n\n  # two\nformat : \"memsched\" version: 1"));
  EXPECT_TRUE(LooksLikeProgramText("format:'memsched'"));
  EXPECT_FALSE(LooksLikeProgramText("format: \"memsched-flat\""));
  EXPECT_FALSE(LooksLikeProgramText("# only a comment"));
  EXPECT_FALSE(LooksLikeProgramText(""));
  EXPECT_TRUE(LooksLikeProgramJson("{\"format\":\"memsched\",\"version\":1,\"par"));
  EXPECT_FALSE(LooksLikeProgramJson("{\"format\":\"memsched-flat\",\"k\":\"h\"}"));
  EXPECT_FALSE(LooksLikeProgramJson("{\"segments\":[]}"));
}

TEST(ProgramReader, ParametersCanBeSetFromOutside) {
  const std::string program = Program(
      "params { key: \"B\" value: 4 }\nderived { key: \"twice\" value: \"2*B\" }\n"
      "program { alloc: \"x\" bytes: \"twice\" }");
  EXPECT_EQ(Sizes(program), "8 ");
  CompileOptions options;
  options.params["B"] = 10;
  EXPECT_EQ(Sizes(program, options), "20 ");
  EXPECT_NE(Read(program, options)->program_header.find("\"B\":10"), std::string::npos);
  options.params["b"] = 1;
  EXPECT_EQ(Error(program, options), "line 3, column 1: params[0]: expected one of B, found \"b\"");
}

TEST(ProgramReader, LoopsGoWhereTheyAreSent) {
  const auto loop = [](const std::string& range) {
    return Sizes(Program("program { for: \"i\" range: " + range +
                         " body { alloc: \"x[i]\" bytes: \"i+5\" } }"));
  };
  EXPECT_EQ(loop("[\"0\", \"3\"]"), "5 6 7 ");
  EXPECT_EQ(loop("[\"2\", \"-1\"]"), "7 6 5 ");
  EXPECT_EQ(loop("[\"2\", \"2\"]"), "");
  EXPECT_EQ(loop("[\"2\", \"-1\", \"1\"]"), "");
  EXPECT_EQ(loop("[\"0\", \"5\", \"3\"]"), "5 8 ");
  EXPECT_EQ(loop("[\"5\", \"0\", \"-2\"]"), "10 8 6 ");
  EXPECT_EQ(Sizes(Program("program { repeat: \"-3\" body { alloc: \"x\" bytes: \"1\" } }")), "");
  EXPECT_NE(loop("[\"0\", \"3\", \"0\"]").find("expected a step other than 0"), std::string::npos);
}

TEST(ProgramReader, SameSeedSameNumbers) {
  const auto draws = [](const std::string& seed) {
    return Sizes(Program("seed: " + seed + R"program(
        program {
          repeat: "50"
          body { let: "T" from { dist: "lognormal" mu: 6.2 sigma: 0.5 min: "16" max: "1024" round: "8" } }
          body { temp: "x" bytes: "T" }
          body {
            let: "g"
            from {
              dist: "mix"
              weights: [0.7, 0.3]
              mix { dist: "loguniform" min: "512" max: "1MiB" }
              mix { dist: "geometric" mean: 9 }
            }
          }
          body { temp: "y" bytes: "g" }
        })program"));
  };
  EXPECT_EQ(draws("1"), draws("1"));
  EXPECT_NE(draws("1"), draws("2"));
  EXPECT_EQ(draws("1").find("expected"), std::string::npos);
}

// A program that calls itself as often as its argument says.
constexpr char kRecursive[] = R"program(
procs {
  key: "f"
  value {
    args: "n"
    body { alloc: "x[n]" bytes: "n" }
    body { if: "n > 0" then { call: "f" with { key: "n" value: "n - 1" } } }
    body { free: "x[n]" }
  }
}
program { call: "f" with { key: "n" value: "DEPTH" } }
)program";

TEST(ProgramReader, CallsMayNest) {
  std::string program = Program(kRecursive);
  program.replace(program.find("DEPTH"), 5, "3");
  EXPECT_EQ(Sizes(program), "3 2 1 0 ");
  program.replace(program.find("\"3\""), 3, "\"500\"");
  EXPECT_EQ(
      Error(program),
      "line 9, column 31: procs[\"f\"].body[1].then[0]: expected at most 200 calls inside each "
      "other, found another");
}

// No program continues for ever, and none fills the memory.
TEST(ProgramReader, Ends) {
  const std::string endless = Program(
      "program { repeat: \"1<2\" body { repeat: \"9223372036854775807\" body { repeat: "
      "\"9223372036854775807\" } } }");
  CompileOptions options;
  options.max_events = 1000;
  EXPECT_EQ(Error(endless, options),
            "line 3, column 69: program[0].body[0].body[0]: expected at most 64000 statements and "
            "64 more "
            "for each event, found more, and 0 events");
  CompileOptions more;  // the limit is no promise of work
  more.max_events = 1'000'000'000;
  EXPECT_EQ(
      Error(endless, more),
      "line 3, column 69: program[0].body[0].body[0]: expected at most 12800000 statements and 64 "
      "more for each event, found more, and 0 events");
  const std::string many = Program("program { repeat: \"600\" body { temp: \"x\" bytes: \"1\" } }");
  EXPECT_EQ(Error(many, options),
            "line 3, column 11: program[0]: expected at most 1000 events (max_events), found more");
  EXPECT_EQ(Error(many), "none");
  EXPECT_EQ(Error("max_events: 10 " + many).find("expected a schedule that begins"), 0u);
  EXPECT_NE(Error(many + " max_events: 10").find("at most 10 events"), std::string::npos);
}

TEST(ProgramExpander, KnowsWhatIsLive) {
  auto source = ByteSource::FromBytes(
      Program("program { phase: \"a\" body { alloc: \"x\" bytes: \"3\" } body { alloc: \"y[7]\" "
              "bytes: \"4\" } } program { free: \"x\" }"));
  const absl::StatusOr<ProgramCode> code = ReadProgramCode(**source, {});
  ASSERT_TRUE(code.ok()) << code.status();
  StringTable strings;
  StackTable stacks;
  ProgramExpander expander(&*code, &strings, &stacks);
  Event event;
  while (expander.Next(&event)) {
  }
  ASSERT_TRUE(expander.status().ok());
  std::string live;
  expander.VisitLive([&](const ProgramExpander::Live& one) {
    StrAppend(&live, code->handles[one.name].text, " ", one.size.value(), " ", strings[one.phase],
              "\n");
  });
  EXPECT_EQ(live, "y[7] 4 a\n");
}

struct Bad {
  const char* program;  // after the first two lines
  const char* error;
};

TEST(ProgramReader, SaysWhatIsWrongAndWhere) {
  const Bad kBad[] = {
      // The parser of text protos.
      {"program { alloc \"x\" }", "line 3, column 17: Expected \":\", found \"\"x\"\"."},
      {"program { bites: \"x\" }",
       "line 3, column 16: Message type \"memreplay.proto.Statement\" has no field named "
       "\"bites\"."},
      {"program { alloc: \"x\"", "line 3, column 21: Expected identifier, got:"},
      {"seed: -1", "line 3, column 7: Expected integer, got: -"},
      {"program { alloc: \"x\" bytes: \"1\" site: \"h\xfbl\" }",
       "line 3, column 33: site: expected UTF-8, found \"h?l\""},
      {"streams: [\"a\", \"\\302\"]", "line 3, column 1: streams: expected UTF-8, found \"?\""},
      // The head.
      {"completion: \"never\"",
       "line 3, column 1: completion: expected \"at_once\" or \"explicit\", found \"never\""},
      {"fraction: 1.5",
       "line 3, column 1: fraction: expected a number above 0 and at most 1, found 1.5"},
      {"streams: [\"a\", \"a\"]",
       "line 3, column 1: streams[1]: expected a name of its own, found \"a\""},
      {"pools { } ", "line 3, column 1: pools[0]: expected a name of its own, found \"\""},
      {"params { key: \"B\" value: 1 } params { key: \"B\" value: 2 }",
       "line 3, column 1: params[0]: expected each key once, found one of them again"},
      {"params { key: \"b c\" value: 1 }",
       "line 3, column 1: params[0]: expected a name, found \"b c\""},
      {"params { key: \"if\" value: 1 }",
       "line 3, column 1: params[0]: expected a name, found \"if\""},
      {"derived { key: \"a\" value: \"b\" } derived { key: \"b\" value: \"a+1\" }",
       "line 3, column 1: derived[0]: expected a value for \"a\", found one that depends on "
       "itself"},
      {"derived { key: \"a\" value: \"7/2\" }",
       "line 3, column 1: derived[\"a\"]: expected a division without a rest (or floor(a,b), "
       "ceil(a,b)), found 7 / 2 in \"7/2\""},
      // Statements.
      {"program { }",
       "line 3, column 1: program[0]: expected a verb (alloc, free, repeat ...), found an empty "
       "statement"},
      {"program { bytes: \"1\" }",
       "line 3, column 1: program[0]: expected a verb (alloc, free, repeat ...), found only bytes"},
      {"program { alloc: \"x\" bytes: \"1\" free: \"x\" }",
       "line 3, column 33: program[0].free: expected one verb in a statement, found alloc and "
       "free"},
      {"program { free: \"x\" bytes: \"1\" }",
       "line 3, column 21: program[0].bytes: expected what goes with free, found bytes"},
      {"program { alloc: \"x\" }",
       "line 3, column 11: program[0].alloc: expected bytes with it, found none"},
      {"program { alloc: \"x y\" bytes: \"1\" }",
       "line 3, column 11: program[0].alloc: expected a name with indexes, such as act[mb][l], "
       "found \"x y\""},
      {"program { alloc: \"x[1\" bytes: \"1\" }",
       "line 3, column 11: program[0].alloc: expected ']', found \"x[1\""},
      {"program { alloc: \"x[1][2][3][4][5]\" bytes: \"1\" }",
       "line 3, column 11: program[0].alloc: expected at most 4 indexes, found "
       "\"x[1][2][3][4][5]\""},
      {"program {\n  alloc: \"x\"\n  bytes: \"3*h*\" }",
       "line 5, column 3: program[0].bytes: expected a variable or parameter that is known here, "
       "found 'h' at 2 of \"3*h*\""},
      {"program { mark: \"it{\" }",
       "line 3, column 11: program[0].mark: expected '}', found \"it{\""},
      {"program { random { ops: \"1\" size { dist: \"uniform\" min: \"1\" max: \"2\" } "
       "lifetime { dist: \"uniform\" min: \"1\" max: \"1\" } tag: \"x{\" } }",
       "line 3, column 119: program[0].random.tag: expected '}', found \"x{\""},
      {"program { alloc: \"x\" bytes: \"1\" stream: \"1\" }",
       "line 3, column 33: program[0].stream: expected one of 1 streams, found \"1\""},
      {"program { pool: \"p\" }",
       "line 3, column 11: program[0].pool: expected a pool that `pools` declares, found \"p\""},
      {"program { for: \"i\" range: \"1\" }",
       "line 3, column 20: program[0].range[0]: expected start, stop and, maybe, step, found 1 "
       "values"},
      {"params { key: \"B\" value: 1 } program { for: \"B\" range: [\"0\", \"1\"] }",
       "line 3, column 40: program[0].for: expected a name that is no parameter, found \"B\""},
      {"program { repeat: \"2\" index: \"i\" body { let: \"i\" value: \"1\" } }",
       "line 3, column 41: program[0].body[0].let: expected a name that is no loop's index, found "
       "\"i\""},
      {"program { repeat: \"2\" body { let: \"a\" value: \"1\" } } program { mark: \"{a}\" }",
       "line 3, column 64: program[1].mark: expected a variable or parameter that is known here, "
       "found 'a' at 0 of \"a\""},
      {"program { let: \"a\" }",
       "line 3, column 11: program[0].let: expected either value or from, found none"},
      {"program { call: \"f\" }",
       "line 3, column 11: program[0].call: expected the name of a procedure, found \"f\""},
      {"procs { key: \"f\" value { args: \"n\" } } program { call: \"f\" }",
       "line 3, column 50: program[0].call: expected an argument \"n\", found none"},
      {"procs { key: \"f\" value { } } program { call: \"f\" with { key: \"n\" value: \"1\" } }",
       "line 3, column 50: program[0].with[0]: expected an argument of f, found \"n\""},
      {"procs { key: \"f\" value { } } procs { key: \"f\" value { } }",
       "line 3, column 30: procs[1]: expected each procedure once, found \"f\""},
      {"procs { key: \"f\" value { body { free: \"x[n]\" } } }",
       "line 3, column 33: procs[\"f\"].body[0].free: expected a variable or parameter that is "
       "known "
       "here, found 'n' at 0 of \"n\""},
      {"program { let: \"a\" from { dist: \"normal\" } }",
       "line 3, column 27: program[0].from.dist: expected uniform, loguniform, lognormal, "
       "geometric, "
       "choice or mix, found \"normal\""},
      {"program { let: \"a\" from { dist: \"uniform\" min: \"1\" } }",
       "line 3, column 27: program[0].from.dist: expected min and max, found uniform without them"},
      {"program { let: \"a\" from { dist: \"choice\" values: \"1\" weights: -1 } }",
       "line 3, column 54: program[0].from.weights[0]: expected 1 weights, none negative, not all "
       "0, "
       "found 1 weights"},
      {"program { let: \"a\" from { dist: \"geometric\" mean: 0.5 } }",
       "line 3, column 45: program[0].from.mean: expected a mean of at least 1, found another"},
      {"program { random { ops: \"1\" size { dist: \"choice\" values: \"1\" } } }",
       "line 3, column 11: program[0].random.lifetime: expected a distribution, found none"},
      {"program { reset: \"all\" }",
       "line 3, column 11: program[0].reset: expected \"peak\" or \"accumulated\", found \"all\""},
      {"program { fraction: \"half\" }",
       "line 3, column 11: program[0].fraction: expected a number from 0 to 1, found \"half\""},
      // Expansion.
      {"program { free: \"x\" }",
       "line 3, column 11: program[0]: expected x to be allocated, found that it is not"},
      {"program { repeat: \"2\" index: \"i\" body { alloc: \"x[i%1]\" bytes: \"1\" } }",
       "line 3, column 41: program[0].body[0]: expected x[0] to be free, found that it is live"},
      {"program { use: \"x[2][3]\" stream: \"0\" }",
       "line 3, column 11: program[0]: expected x[2][3] to be allocated, found that it is not"},
      {"program { move: \"x\" to: \"y\" }",
       "line 3, column 11: program[0]: expected x to be allocated, found that it is not"},
      {"program { outside_free: \"x\" }",
       "line 3, column 11: program[0]: expected x to be taken, found that it is not"},
      {"program { wait: \"x\" }",
       "line 3, column 11: program[0]: expected the event x to be recorded, found that it is not"},
      {"program { alloc: \"x\" bytes: \"0-1\" }",
       "line 3, column 11: program[0]: expected bytes of at least 0, found -1"},
      {"program { repeat: \"2\" index: \"i\" body { temp: \"x\" bytes: \"1\" stream: \"i\" } }",
       "line 3, column 41: program[0].body[0]: expected one of 1 streams, found 1"},
      {"program { alloc: \"x\" bytes: \"4000000000*4000000000\" }",
       "line 3, column 11: program[0]: expected a value within 64 bits, found 4000000000 * "
       "4000000000 in \"4000000000*4000000000\""},
      {"program { let: \"a\" from { dist: \"uniform\" min: \"2\" max: \"1\" } }",
       "line 3, column 11: program[0]: expected max of at least 2, found 1"},
  };
  for (const Bad& bad : kBad) EXPECT_EQ(Error(Program(bad.program)), bad.error) << bad.program;
}

TEST(ProgramReader, SaysWhatIsWrongInJson) {
  const auto json = [](const std::string& rest) {
    return Error("{\"format\":\"memsched\",\"version\":1," + rest + "}");
  };
  EXPECT_EQ(json("\"program\":[{\"alloc\":\"x\"}]"),
            "program[0].alloc: expected bytes with it, found none");
  EXPECT_EQ(json("\"program\":[{\"free\":\"x\"}]"),
            "program[0]: expected x to be allocated, found that it is not");
  EXPECT_EQ(json("\"program\":[{\"bites\":\"x\"}]").find("not JSON of a ScheduleProgram: "), 0u);
  EXPECT_EQ(
      json("\"program\":[{\"alloc\":\"x\",\"bytes\":512}]").find("not JSON of a ScheduleProgram: "),
      0u);
  EXPECT_EQ(Error("{\"format\":\"memsched\",\"version\":2}"), "version: expected 1, found 2");
}

}  // namespace
}  // namespace memreplay::program

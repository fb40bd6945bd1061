// Checks answers that were wrong once, each on the smallest file that shows it. What the commands
// print is golden.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include "tests/cli/session.h"

namespace memreplay {
namespace {

constexpr char kHeader[] =
    R"({"k":"h","format":"memsched-flat","version":1,"unit":"B","streams":1,"devices":1,)"
    R"("recorded":true,"layout":["device_traces","time_us","block_addresses","is_expandable"]}
)";

// A device of which only one segment at the end is known, and one of which nothing is known.
const std::string kNoEvents = std::string(kHeader) + R"({"k":"dev","final":true}
{"k":"seg","addr":139637976727552,"b":2097152,"s":0,"p":[0,0]}
{"k":"blk","addr":139637976727552,"b":1024,"req":1000,"state":"active_allocated"}
{"k":"blk","addr":139637976728576,"b":2096128,"req":0,"state":"inactive"}
)";
const std::string kNothing = std::string(kHeader) + R"({"k":"dev","final":true}
)";

constexpr char kProgramHeader[] =
    R"({"k":"h","format":"memsched-flat","version":1,"unit":"B","streams":1,"devices":1}
)";

// A schedule whose memory doubles: 30 MiB are cached in two pieces when 40 are requested, and a
// small block is the last to make reserved memory grow.
constexpr char kDoubling[] =
    R"({"k":"h","format":"memsched-flat","version":1,"unit":"B","streams":1,"devices":1}
{"k":"a","id":1,"b":157286400}
{"k":"f","id":1}
{"k":"a","id":2,"b":209715200}
{"k":"f","id":2}
{"k":"a","id":3,"b":419430400}
{"k":"a","id":4,"b":1000}
)";

// Two devices, of which the second runs out of 30 MiB and the first does not.
constexpr char kTwoDevices[] =
    R"({"k":"h","format":"memsched-flat","version":1,"unit":"B","streams":1,"devices":2,"total":31457280}
{"k":"a","id":1,"b":20971520,"d":0}
{"k":"a","id":2,"b":20971520,"d":1}
{"k":"a","id":3,"b":20971520,"d":1}
)";

// A loop of six steps, each of which keeps 12 MiB and frees twice 10, until 40 are refused.
std::string LoopUntilOom() {
  std::string text = std::string(kHeader) + "{\"k\":\"dev\",\"final\":true}\n";
  const uint64_t first = 139637976727552;
  const uint64_t second = first + 10485760;
  const std::string kept = R"(,"b":12582912,"s":0})";
  const std::string freed = R"(,"b":10485760,"s":0})";
  const auto line = [&text](const std::string& begin, uint64_t address, const std::string& end) {
    text += begin + R"("addr":)" + std::to_string(address) + end + "\n";
  };
  for (uint64_t step = 0; step < 6; ++step) {
    const uint64_t address = first - (step + 1) * 12582912;
    line(R"({"k":"fx","a":"segment_alloc",)", address, kept);
    line(R"({"k":"a",)", address, kept);
    for (const uint64_t temporary : {first, second}) {
      if (step == 0) line(R"({"k":"fx","a":"segment_alloc",)", temporary, freed);
      line(R"({"k":"a",)", temporary, freed);
    }
    for (const uint64_t temporary : {first, second}) {
      line(R"({"k":"f",)", temporary, freed);
      line(R"({"k":"fx","a":"free_completed",)", temporary, freed);
    }
  }
  for (const uint64_t temporary : {first, second}) {
    line(R"({"k":"fx","a":"segment_free",)", temporary, freed);
  }
  text += R"({"k":"fx","a":"oom","addr":20971520,"b":41943040,"s":0})";
  text += "\n";
  for (uint64_t step = 6; step-- > 0;) {
    const uint64_t address = first - (step + 1) * 12582912;
    line(R"({"k":"seg",)", address, R"(,"b":12582912,"s":0,"p":[0,0],"large":true})");
    line(R"({"k":"blk",)", address, R"(,"b":12582912,"req":12582912,"state":"active_allocated"})");
  }
  return text;
}

// 20 MiB that stay, and for each sample 10 that are freed, or `stay`.
std::string OfBatch(uint64_t batch, bool stay = false) {
  std::string text = std::string(kHeader) + "{\"k\":\"dev\",\"final\":true}\n";
  const uint64_t kept = 139637976727552, made = kept + (uint64_t{1} << 40);
  const std::string size = std::to_string(batch * 10485760);
  const std::string state = stay ? R"(,"state":"active_allocated"})" : R"(,"state":"inactive"})";
  const auto line = [&text](const std::string& begin, uint64_t address, const std::string& end) {
    text += begin + R"("addr":)" + std::to_string(address) + end + "\n";
  };
  for (const auto& [address, bytes] :
       {std::pair(kept, std::string("20971520")), std::pair(made, size)}) {
    line(R"({"k":"fx","a":"segment_alloc",)", address, R"(,"s":0,"b":)" + bytes + "}");
    line(R"({"k":"a",)", address, R"(,"s":0,"b":)" + bytes + "}");
  }
  if (!stay) {
    line(R"({"k":"f",)", made, R"(,"s":0,"b":)" + size + "}");
    line(R"({"k":"fx","a":"free_completed",)", made, R"(,"s":0,"b":)" + size + "}");
  }
  line(R"({"k":"seg",)", kept, R"(,"b":20971520,"s":0,"p":[0,0],"large":true})");
  line(R"({"k":"blk",)", kept, R"(,"b":20971520,"req":20971520,"state":"active_allocated"})");
  line(R"({"k":"seg",)", made, R"(,"b":)" + size + R"(,"s":0,"p":[0,0],"large":true})");
  line(R"({"k":"blk",)", made, R"(,"b":)" + size + R"(,"req":)" + size + state);
  return text;
}

class AnswersTest : public SessionTest {
 protected:
  void SetUp() override {
    SessionTest::SetUp();
    std::filesystem::copy_file("tests/data/snapshots/torch-2.6/warm.pickle",
                               folder_ / "warm.pickle");
    Write("no_events.jsonl", kNoEvents);
    Write("nothing.jsonl", kNothing);
    Write("doubling.jsonl", kDoubling);
    Write("two.jsonl", kTwoDevices);
    Write("loop.jsonl", LoopUntilOom());
    Write("program.jsonl", kTwoDevices);
    Write("2.jsonl", OfBatch(2));
    Write("4.jsonl", OfBatch(4));
    Write("stays.jsonl", OfBatch(8, /*stay=*/true));
  }
};

// The file does not have what would have come after an out of memory, nor what came before a
// recording that began late.
TEST_F(AnswersTest, LowerBounds) {
  ExpectSession("lower_bounds",
                {"inspect loop.jsonl | grep peak", "oom loop.jsonl", "replay loop.jsonl | head -4",
                 "replay loop.jsonl --capacity 1GiB | head -4", "fit loop.jsonl --conf ''",
                 "replay warm.pickle | head -4", "fit warm.pickle --conf '' | head -3",
                 "sweep loop.jsonl --conf '' --capacity 1GiB | head -3",
                 "replay warm.pickle --capacity 1GiB | head -5", "oom loop.jsonl --capacity 1GiB",
                 "oom no_events.jsonl"});
}

// Whatever is a lower bound is never said to fit: no words, no field and no exit status do.
TEST_F(AnswersTest, ALowerBoundNeverFits) {
  for (const char* file : {"loop.jsonl", "warm.pickle", "no_events.jsonl"}) {
    for (const char* question :
         {"advise --card 16GiB ", "replay --capacity 16GiB ", "oom --capacity 16GiB ",
          "report -o page.html --capacity 16GiB "}) {
      const std::string asked = std::string(question) + file;
      const Outcome text = Run(asked);
      EXPECT_EQ(text.status, 1) << asked;
      EXPECT_NE(text.out.find("LOWER BOUND: "), std::string::npos) << asked << text.out;
      for (const char* claim : {"it fits", "It fits", "to spare"}) {
        EXPECT_EQ(text.out.find(claim), std::string::npos) << asked << text.out;
      }
    }
    const Outcome json = Run(std::string("advise --json --card 16GiB ") + file);
    EXPECT_EQ(json.out.find("\"fits\": true"), std::string::npos) << file;
    EXPECT_NE(json.out.find("\"is_lower_bound\": true"), std::string::npos) << file;
    EXPECT_NE(json.out.find("\"survives\": true"), std::string::npos) << file;
    const Outcome page = Run(std::string("report -o - ") + file);
    EXPECT_LT(page.out.find("LOWER BOUND: "), page.out.find("class=\"workbench\"")) << file;
  }
  const Outcome whole = Run("advise --card 16GiB program.jsonl");
  EXPECT_EQ(whole.status, 0);
  EXPECT_NE(whole.out.find("it fits, with "), std::string::npos) << whole.out;
}

// 150 and 200 MiB are cached when 400 are requested: they are released if need be, and then no more
// than that is reserved.
TEST_F(AnswersTest, NoFigureIsBeyondTheDevice) {
  const Outcome outcome = Run("advise --card 450MiB doubling.jsonl");
  EXPECT_NE(outcome.out.find("it fits, with 48.0 MiB to spare"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("752 MiB"), std::string::npos) << outcome.out;
}

TEST_F(AnswersTest, Cards) {
  ExpectSession("cards",
                {"replay program.jsonl --capacity rtx-4090 | head -9",
                 "oom program.jsonl --capacity 'NVIDIA H200'",
                 "fit nanogpt --n_layer=2 --batch_size=? --capacity t4 | head -3",
                 "fit nanogpt --n_layer=2 --batch_size=? --capacity t4 | tail -1",
                 "synth nanogpt --n_layer=2 --summary --capacity t4 | tail -1",
                 "fit nanogpt --n_layer=2 --batch_size=? --capacity t4 --context 1GiB | head -4",
                 "synth nanogpt --n_layer=2 --summary --capacity t4 --context 1GiB | tail -1",
                 "synth nanogpt --n_layer=2 --summary --multiprocessors=46 | head -5 | tail -1",
                 "replay program.jsonl --capacity rtx-4o90", "replay program.jsonl --capacity 4090",
                 "replay program.jsonl --capacity 16", "replay program.jsonl --capacity v100"});
}

// The answer says nothing about what is not there.
TEST_F(AnswersTest, NothingInIt) {
  ExpectSession("nothing", {"inspect --deep nothing.jsonl", "replay nothing.jsonl",
                            "fit nothing.jsonl --conf ''", "sweep nothing.jsonl --conf ''",
                            "oom nothing.jsonl", "inspect --deep no_events.jsonl",
                            "fit no_events.jsonl --conf '' | head -3",
                            "inspect nothing.jsonl no_events.jsonl | head -3"});
}

// A file of no format that is text is a log.
TEST_F(AnswersTest, ATextIsExplained) {
  Write("error.txt", "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n");
  EXPECT_EQ(Run("error.txt").out, Run("explain error.txt").out);
  EXPECT_EQ(Run("error.txt").status, 1);
  EXPECT_NE(Run("oom error.txt").err.find("memreplay explain"), std::string::npos);
}

// The answer is about the growth that made most of the peak, not about the last small step.
TEST_F(AnswersTest, CauseOfThePeak) {
  ExpectSession("cause", {"sweep doubling.jsonl --conf '' | grep Under"});
}

TEST_F(AnswersTest, Advice) {
  ExpectSession("advise", {"advise loop.jsonl", "advise loop.jsonl --card 20MiB | head -4",
                           "advise loop.jsonl --card 16GiB | head -4", "advise warm.pickle",
                           "advise nothing.jsonl", "advise program.jsonl --card t4 | head -3",
                           "advise program.jsonl --card t4 | tail -1",
                           "advise loop.jsonl --card rtx-4o90", "advise loop.jsonl --card=my.py"});
}

// 20 MiB, and 10 for each sample: 13 fit in 150 MiB.
TEST_F(AnswersTest, AdviceForAValueThatWasNotRecorded) {
  ExpectSession(
      "advise_value",
      {"advise 2.jsonl=2 4.jsonl=4 --batch_size=? --card 150MiB",
       "advise 2.jsonl=2 4.jsonl=4 --batch_size=7 --card 80MiB | head -3",
       "advise 2.jsonl=2 4.jsonl=4 --batch_size=4 | head -3",
       "advise 2.jsonl=2 stays.jsonl=8 --batch_size=? --card 80MiB",
       "advise 2.jsonl=2 loop.jsonl=8 --batch_size=7", "advise 2.jsonl=2 --batch_size=7",
       "advise 2.jsonl 4.jsonl --batch_size=7", "advise 2.jsonl=2 4.jsonl=2 --batch_size=7",
       "advise 2.jsonl=2 4.jsonl=4 --batch_size=?",
       "advise 2.jsonl=2 4.jsonl=4 --batch_size=7 --width=3",
       "advise 2.jsonl=2 4.jsonl=4 --batch_size=0"});
}

// The ring kept only the completion of a free, so it begins after it.
TEST_F(AnswersTest, AFreeThatCompletesFirst) {
  Write("completes.jsonl", std::string(kHeader) + R"({"k":"dev","final":true}
{"k":"fx","a":"free_completed","addr":139637978824704,"b":3145728,"s":0}
{"k":"seg","addr":139637978824704,"b":20971520,"s":0,"p":[0,0],"large":true}
{"k":"blk","addr":139637978824704,"b":3145728,"req":0,"state":"inactive"}
{"k":"blk","addr":139637981970432,"b":17825792,"req":17825792,"state":"active_allocated"}
)");
  ExpectSession("completes_first", {"inspect completes.jsonl --deep | grep -e 'peak a'"});
}

// As nested concatenation keeps the logits of an evaluation: expandable segments serve the request
// that was refused, and some steps later there is another.
TEST_F(AnswersTest, GrowthComesBeforeFragmentation) {
  Write("grows.txtpb", R"x(format: "memsched"
version: 1
device { total: 12373196800 }
program { alloc: "weights" bytes: "4MiB" site: "weights" }
program { alloc: "x[0]" bytes: "1MiB" site: "x" }
program { alloc: "logits[0]" bytes: "256MiB" site: "logits" }
program { alloc: "workspace" bytes: "8519680" site: "logits" }
program { alloc: "x[1]" bytes: "1MiB" site: "x" }
program { free: "x[0]" }
program { alloc: "logits[1]" bytes: "256MiB" site: "logits" }
program { alloc: "kept[1]" bytes: "512MiB" site: "kept = cat(kept, logits)" }
program { free: "logits[0]" }
program {
  for: "step"
  range: ["2", "21"]
  body {
    alloc:
      "x[step]" bytes : "1MiB" site : "x" }
  body { free: "x[step-1]" }
  body { alloc: "logits[step]" bytes: "256MiB" site: "logits" }
  body { free: "logits[step-1]" }
  body { alloc: "kept[step]" bytes: "256MiB*(step+1)" site: "kept = cat(kept, logits)" }
  body {
    free:
      "kept[step-1]"
    }
}
)x");
  ExpectSession("grows", {"replay grows.txtpb --snapshot-out grows.pickle | head -1",
                          "oom grows.pickle | head -4"});
}

TEST_F(AnswersTest, TheDeviceThatRanOutComesFirst) {
  ExpectSession("two_devices", {"oom two.jsonl | head -5",
                                "oom two.jsonl --json | grep -e '\"device\":' -e '\"verdict\":'"});
}

// People post such texts: more free than requested (WSL), more held than the card has (fallback to
// system memory), PyTorch 1.x; and TEXT is an argument, a file, or standard input.
TEST_F(AnswersTest, MessagesInTheWild) {
  const std::string wsl =
      "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 24.00 GiB of "
      "which 20.50 GiB is free. Of the allocated memory 1.00 GiB is allocated by PyTorch, and "
      "100.00 MiB is reserved by PyTorch but unallocated.";
  const std::string fallback =
      "CUDA out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total capacity of 8.00 GiB of "
      "which 0 bytes is free. Of the allocated memory 14.31 GiB is allocated by PyTorch, and "
      "10.00 MiB is reserved by PyTorch but unallocated.";
  const std::string cached =
      "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 7.93 GiB total "
      "capacity; 6.69 GiB already allocated; 11.88 MiB free; 379.94 MiB cached)";
  Write("cached.txt", cached + "\n");
  ExpectSession("messages",
                {"oom --message '" + wsl + "'", "oom --message '" + fallback + "'",
                 "oom --message cached.txt | head -2", "oom --message - < cached.txt | head -2"});
}

// What other programs read: names are cut between characters, and no cell is a formula.
TEST_F(AnswersTest, TextsForOtherPrograms) {
  for (size_t before = 0; before < 3; ++before) {
    std::string name(before, 'a');
    for (int i = 0; i < 60; ++i) name += "模";
    Write("names.jsonl",
          std::string(kProgramHeader) + R"({"k":"a","id":1,"b":1048576,"t":")" + name + "\"}\n");
    const Outcome drawn = Run("convert names.jsonl names.svg && iconv -f utf-8 -t utf-8 names.svg");
    EXPECT_EQ(drawn.status, 0) << drawn.err;
    EXPECT_NE(drawn.out.find("模</text>"), std::string::npos);
  }
  std::string text = kProgramHeader;
  int id = 0;
  for (const std::string cell : {"=1+1", "+1", "-1", "@A1", "＝1", "=1,\\\"2\\\"", "a=1"}) {
    text += R"({"k":"a","id":)" + std::to_string(++id) + R"(,"b":1000,"t":")" + cell + "\"}\n";
    text += R"({"k":"m","n":")" + cell + "\"}\n";
  }
  Write("cells.jsonl", text);
  const std::string table = Run("convert cells.jsonl - --to csv").out;
  for (const std::string cell :
       {"\"'=1+1\"", "\"'+1\"", "\"'-1\"", "\"'@A1\"", "\"'＝1\"", "\"'=1,\"\"2\"\"\"", "a=1"}) {
    size_t found = 0;
    for (size_t at = 0; (at = table.find("," + cell + "\n", at)) != std::string::npos; ++at)
      ++found;
    EXPECT_GE(found, 2u) << cell << " in\n" << table;
  }
}

// The error names what is no recording and says what to record instead; `-` is standard input.
TEST_F(AnswersTest, OtherFiles) {
  Write("timeline.json", "[[1, 2], [[0, 0], [1, 1]]]");
  Write("chrome.json",
        R"({"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "kernel", "name": "k"}]})");
  Write("pointer.pickle",
        "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 1270510\n");
  Write("page.html", "<!DOCTYPE html>\n<html></html>\n");
  ExpectSession("other_files",
                {"inspect timeline.json", "inspect chrome.json", "report pointer.pickle",
                 "oom page.html", "inspect - < warm.pickle | head -4", "help lint | head -1"});
}

}  // namespace
}  // namespace memreplay

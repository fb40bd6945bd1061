// Tests the binary from the outside: what it prints, to which stream, and how it exits, on small
// files written here. Each case is a golden file; tests/golden.h says how to update them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/cli/session.h"

namespace memreplay {
namespace {

using std::string_literals::operator""s;  // NOLINT(misc-unused-using-decls): "..."s below

constexpr char kProgramWithHeader[] =
    R"({"k":"h","format":"memsched-flat","version":1,"unit":"B","streams":1,"devices":1,)"
    R"("total":104857600,"fraction":0.25,"conf":"max_split_size_mb:40"}
{"k":"a","id":1,"b":20971520}
{"k":"a","id":2,"b":20971520}
{"k":"conf","v":"no_such_key:1"}
)";

// 8 MiB are free next to a live block, and 10 MiB are free on the device: there is no place for 16.
constexpr char kOomRecording[] =
    R"({"k":"h","format":"memsched-flat","version":1,"unit":"B","streams":1,"devices":1,)"
    R"("recorded":true,"layout":["device_traces","time_us","block_addresses","is_expandable"]}
{"k":"dev","final":true}
{"k":"fx","a":"segment_alloc","addr":139637976727552,"b":20971520,"s":0}
{"k":"a","addr":139637976727552,"b":8388608,"s":0}
{"k":"a","addr":139637985116160,"b":4194304,"s":0}
{"k":"f","addr":139637976727552,"b":8388608,"s":0}
{"k":"fx","a":"free_completed","addr":139637976727552,"b":8388608,"s":0}
{"k":"fx","a":"oom","addr":10485760,"b":16777216,"s":0}
{"k":"seg","addr":139637976727552,"b":20971520,"s":0,"p":[0,0],"large":true}
{"k":"blk","addr":139637976727552,"b":8388608,"req":8388608,"state":"inactive"}
{"k":"blk","addr":139637985116160,"b":4194304,"req":4194304,"state":"active_allocated"}
{"k":"blk","addr":139637989310464,"b":8388608,"req":0,"state":"inactive"}
)";

constexpr char kOomMessage[] =
    "CUDA out of memory. Tried to allocate 22.78 GiB. GPU 0 has a total capacity of 31.47 GiB of "
    "which 12.73 GiB is free. Including non-PyTorch memory, this process has 18.73 GiB memory in "
    "use. Of the allocated memory 9.08 GiB is allocated by PyTorch, and 9.35 GiB is reserved by "
    "PyTorch but unallocated. If reserved but unallocated memory is large try setting "
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.\n";

// These costs of a made-up card are round numbers, in nanoseconds.
constexpr char kCosts[] =
    R"({"card": "Fictional GPU", "driver": "13.0", "date": "2026-11-20", "times": [
{"call": "cuMemAlloc", "size": "2097152", "count": "9", "median_ns": "100000"},
{"call": "cuMemAlloc", "size": "20971520", "count": "9", "median_ns": "200000"},
{"call": "cuMemFree", "size": "2097152", "count": "9", "median_ns": "300000"},
{"call": "cuMemCreate", "size": "20971520", "count": "9", "median_ns": "200000"},
{"call": "cuMemMap", "size": "20971520", "count": "9", "median_ns": "1000"},
{"call": "cuMemSetAccess", "size": "20971520", "count": "9", "median_ns": "9000"},
{"call": "cuMemUnmap", "size": "20971520", "count": "9", "median_ns": "50000"},
{"call": "cuMemRelease", "size": "20971520", "count": "9", "median_ns": "90000"}]}
)";

class MemreplayTest : public SessionTest {
 protected:
  void SetUp() override {
    SessionTest::SetUp();
    std::filesystem::create_directories(folder_ / "a_directory");
    std::filesystem::create_directories(folder_ / "events");
    Write("recording.jsonl", kSmallRecording);
    Write("program.jsonl", kSmallProgram);
    Write("header.jsonl", kProgramWithHeader);
    Write("oom.jsonl", kOomRecording);
    Write("message.txt", kOomMessage);
    std::filesystem::copy("examples/mechanisms", folder_ / "mechanisms");
    std::string diverging = kSmallRecording;
    const std::string second = R"({"k":"a","addr":139637976728576)";
    diverging.replace(diverging.find(second), second.size(), R"({"k":"a","addr":139637976729600)");
    Write("diverging.jsonl", diverging);
  }
};

TEST_F(MemreplayTest, Help) {
  ExpectSession("help", {"--help",
                         "--help --all",
                         "inspect --help",
                         "replay --help",
                         "oom --help",
                         "sweep --help",
                         "fit --help",
                         "advise --help",
                         "gpu --help",
                         "report --help",
                         "convert --help",
                         "lint --help",
                         "record --help",
                         "fit script --help",
                         "sweep script --help",
                         "synth --help",
                         "synth nanogpt --help",
                         "--version",
                         "advise recording.jsonl --help",
                         "synth schedule --help"});
}

// Each form's own help, by all of its names.
TEST_F(MemreplayTest, HelpOfEachForm) {
  for (const auto& [form, usage] : std::vector<std::pair<std::string, std::string>>{
           {"fit", "fit FILE...|MODEL"},
           {"fit script", "fit script --KEY=?"},
           {"sweep script", "sweep script --KEY=A,B,C"},
           {"advise", "advise [script]"},
           {"advise script", "advise [script]"},
           {"advise recording", "advise [recording]"},
           {"advise x.pickle", "advise [recording]"},
           {"synth", "synth MODEL"},
           {"synth llama", "synth MODEL"},
           {"synth schedule", "synth [schedule]"},
           {"synth x.txtpb", "synth [schedule]"},
           {"record", "record "}}) {
    for (const std::string& words : {"help " + form, form + " --help", form + " -h"}) {
      const Outcome outcome = Run(words);
      EXPECT_EQ(outcome.status, 0) << words << outcome.err;
      EXPECT_TRUE(outcome.out.starts_with("usage: memreplay " + usage)) << words << outcome.out;
    }
  }
}

TEST_F(MemreplayTest, HelpOfAllCommands) {
  const std::string all = Run("--help --all").out;
  EXPECT_EQ(Run("help --all").out, all);
  EXPECT_EQ(Run("--all -h").out, all);
  EXPECT_EQ(Run("help").out, Run("--help").out);
  EXPECT_NE(all, Run("help").out);
}

// The flags of the forms are completed and in the manual.
TEST_F(MemreplayTest, CompletionOfForms) {
  for (const std::string kind : {"bash", "zsh", "fish"}) {
    // The parameters of a schedule and the keys of a model are flags like others.
    const std::string text = Run("completion " + kind).out;
    for (const std::string word : {"gradient_accumulation_steps", "llama"}) {
      EXPECT_NE(text.find(word), std::string::npos) << kind << " " << word;
    }
  }
  for (const std::string words : {"report --s", "fit nanogpt --batch_s", "synth llama --n_layer"}) {
    const Outcome outcome = Shell(
        "'" + binary_ + "' completion bash > c; bash -c 'source ./c; COMP_WORDS=(memreplay " +
        words + "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _memreplay; echo ${COMPREPLY[@]}'");
    EXPECT_EQ(outcome.out, words == "report --s"              ? "--search --set\n"
                           : words == "fit nanogpt --batch_s" ? "--batch_size\n"
                                                              : "--n_layers\n");
  }
  for (const std::string kind : {"bash", "zsh", "fish", "man"}) {
    std::string text = Run("completion " + kind).out;
    text.erase(std::remove(text.begin(), text.end(), '\\'), text.end());
    for (const std::string word : {"until", "step", "max-runs", "check", "fit script"}) {
      const bool is_pair = kind == "fish" && word == "fit script";
      EXPECT_NE(text.find(is_pair ? "from fit; and __fish_seen_subcommand_from script" : word),
                std::string::npos)
          << kind << " " << word;
    }
  }
}

TEST_F(MemreplayTest, UnusableCalls) {
  ExpectSession("unusable_calls", {"",
                                   "repaly program.jsonl",
                                   "--verison",
                                   "quux",
                                   "replay",
                                   "inspect",
                                   "replay program.jsonl --cnof x",
                                   "replay program.jsonl --capacity much",
                                   "replay program.jsonl --capacity",
                                   "replay program.jsonl --start warm",
                                   "replay program.jsonl --fraction 1.5",
                                   "replay program.jsonl --torch 1.0",
                                   "replay program.jsonl --torch soon",
                                   "replay program.jsonl --conf no_such_key:1",
                                   "replay program.jsonl --conf max_split_size_mb:1",
                                   "replay program.jsonl --conf backend:cudaMallocAsync",
                                   "replay program.jsonl --device 3",
                                   "inspect program.jsonl --device 3",
                                   "replay program.jsonl recording.jsonl --events-out x",
                                   "replay program.jsonl --events-out x --events-out-dir events",
                                   "replay program.jsonl --json --events-out -",
                                   "replay program.jsonl --events-out no_such_directory/x",
                                   "convert program.jsonl",
                                   "convert program.jsonl out.unknown",
                                   "convert program.jsonl - --to protobuff",
                                   "convert no_such_file out.jsonl",
                                   "inspect program.jsonl --memory-lim 5GiB",
                                   "--memory-limit 1 inspect program.jsonl",
                                   "inspect program.jsonl --memory-limit",
                                   "replay program.jsonl --events-out --json",
                                   "replay program.jsonl --capacity rtx-9999",
                                   "help repaly",
                                   "fit scrip --batch_size=? --card rtx-4090 -- train.py",
                                   "fit nanogtp --batch_size=?",
                                   "fit script",
                                   "fit script --n=? train.py --card rtx-4090",
                                   "fit script --n=? --card rtx-4090",
                                   "fit script --n=? --card rtx-9999 train.py",
                                   "fit script --n 5 --card rtx-4090 train.py",
                                   "sweep script --card rtx-4090 train.py --n=1,2",
                                   "advise",
                                   "advise --card rtx-4090",
                                   "advise --card rtx-9999",
                                   "advise --card rtx-9999 train.py",
                                   "advise train.py --card rtx-4090",
                                   "advise train.py --help",
                                   "advise --card rtx-4090 --try chunked_los train.py",
                                   "record --card rtx-4090 --remedy chunked_los train.py",
                                   "record",
                                   "record --card rtx-4090",
                                   "record train.py --card rtx-4090"});
}

TEST_F(MemreplayTest, SaysThatTheDiskIsFull) {
  if (!std::filesystem::is_character_file("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  for (const std::string arguments : {"replay program.jsonl --events-out /dev/full",
                                      "convert program.jsonl /dev/full --to flat_jsonl"}) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.err, "memreplay: /dev/full: cannot write: No space left on device\n");
  }
}

TEST_F(MemreplayTest, UnusableFiles) {
  ASSERT_EQ(Run("convert recording.jsonl good.pickle").status, 0);
  const std::string good = Read("good.pickle");
  ASSERT_GT(good.size(), 100u);
  Write("truncated.pickle", good.substr(0, good.size() / 2));
  std::string flipped = good;
  flipped[good.size() / 3] = static_cast<char>(flipped[good.size() / 3] ^ 0x80);
  Write("bit_flipped.pickle", flipped);
  Write("empty.pickle", "");
  Write("one_byte.pickle", "\x80");
  Write("gigantic.pickle", "\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f"s + good.substr(2));
  Write("malicious.pickle", "\x80\x02"s + "cos\nsystem\nq\x01(U\x11" + "echo owned >owned" + "tR.");
  Write("malicious_0.pickle", "cos\nsystem\n(S'echo owned >owned'\ntR."s);
  Write("truncated.jsonl", std::string(kSmallProgram).substr(0, 150));
  Write("not_a_trace.txt", "hello\n");
  ExpectSession(
      "unusable_files",
      {"inspect no_such_file", "inspect a_directory", "inspect empty.pickle",
       "inspect one_byte.pickle", "inspect truncated.pickle", "inspect bit_flipped.pickle",
       "inspect gigantic.pickle", "inspect malicious.pickle", "inspect malicious_0.pickle",
       "inspect truncated.jsonl", "inspect not_a_trace.txt", "replay no_such_file",
       "replay truncated.pickle", "replay malicious.pickle", "convert malicious.pickle out.jsonl"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "owned"));
}

TEST_F(MemreplayTest, Inspect) {
  ExpectSession("inspect", {"inspect recording.jsonl", "inspect program.jsonl",
                            "inspect recording.jsonl --json"});
  EXPECT_EQ(Run("recording.jsonl").out, Run("inspect recording.jsonl").out);
}

TEST_F(MemreplayTest, ReplayAsRecorded) {
  ExpectSession("as_recorded",
                {"replay recording.jsonl", "replay diverging.jsonl",
                 "replay recording.jsonl --events-out -", "replay diverging.jsonl --json"});
}

TEST_F(MemreplayTest, WhatIf) {
  ExpectSession("what_if", {"replay recording.jsonl --conf expandable_segments:True",
                            "replay recording.jsonl --capacity 10MiB",
                            "replay recording.jsonl --torch 2.6.0 --start fresh"});
}

TEST_F(MemreplayTest, Programs) {
  ExpectSession("programs", {"replay program.jsonl", "replay program.jsonl --json",
                             "replay program.jsonl --events-out -",
                             "replay program.jsonl --conf expandable_segments:True --events-out -",
                             "replay header.jsonl", "replay header.jsonl --fraction 1 --conf ''"});
}

TEST_F(MemreplayTest, OutOfMemory) {
  ExpectSession("oom",
                {"oom oom.jsonl --recorded-gpu 40MiB", "oom recording.jsonl", "oom program.jsonl",
                 "oom recording.jsonl --capacity 10MiB", "oom mechanisms/leak.txtpb",
                 "oom mechanisms/pending_free.txtpb", "oom mechanisms/split_giant.txtpb",
                 "oom mechanisms/stray_stream.txtpb", "oom mechanisms/shortage.txtpb",
                 "oom mechanisms/stranded_weights.txtpb", "oom oom.jsonl --json"});
}

TEST_F(MemreplayTest, OutOfMemoryMessage) {
  ExpectSession("oom_message",
                {"oom --message message.txt", "oom --message program.jsonl", "oom --message none",
                 "oom --message message.txt program.jsonl", "oom", "explain",
                 "explain 'RuntimeError: CUDA error: out of memory'", "explain 'KeyError: 3'",
                 "explain message.txt --json"});
  EXPECT_EQ(Run("explain message.txt").out, Run("oom --message message.txt").out);
  EXPECT_EQ(Run("explain \"$(cat message.txt)\"").out, Run("explain message.txt").out);
  const Outcome piped = Run("oom --message - < message.txt");
  EXPECT_EQ(piped.status, 1);
  EXPECT_EQ(piped.out, Run("oom --message message.txt").out);
}

TEST_F(MemreplayTest, Jobs) {
  std::filesystem::create_directories(folder_ / "ranks");
  for (int rank = 0; rank < 5; ++rank) {
    std::string program = kSmallProgram;
    if (rank == 3) program.replace(program.find("20971520"), 8, "41943040");
    Write("ranks/rank" + std::to_string(rank) + ".jsonl", program);
  }
  Write("ranks/.hidden", "no trace");
  ExpectSession("jobs", {"replay ranks | tail -7", "inspect ranks | tail -7",
                         "oom ranks --capacity 60MiB | tail -7", "oom mechanisms | tail -8",
                         "inspect ranks none | tail -7", "inspect events",
                         "replay ranks --json | tail -1 | tr ',' '\\n' | sed -n '/job/,$p'"});
}

TEST_F(MemreplayTest, InspectDeep) {
  ExpectSession("inspect_deep",
                {"inspect --deep mechanisms/leak.txtpb",
                 "inspect --deep mechanisms/stray_stream.txtpb", "inspect --deep recording.jsonl"});
}

TEST_F(MemreplayTest, Report) {
  std::filesystem::create_directories(folder_ / "pages");
  std::filesystem::create_directories(folder_ / "rank1");
  Write("rank1/program.jsonl", kSmallProgram);
  ExpectSession("report",
                {"report recording.jsonl", "report program.jsonl -o out.html --capacity 40MiB",
                 "report program.jsonl rank1/program.jsonl diverging.jsonl -o pages; ls pages",
                 "report program.jsonl --conf expandable_segments:True --json | tr -d ' \\n' | "
                 "grep -o '\"curve\":{[^}]*}'",
                 "report", "report program.jsonl --conf no_such_key:1",
                 "report program.jsonl recording.jsonl -o job.html; ls job.html",
                 "report program.jsonl -o no_such_folder/out.html", "report program.jsonl -o",
                 "report program.jsonl -x out.html", "report program.jsonl --json -o -",
                 "report none -o none.html"});
  const std::string page = Read("out.html");
  EXPECT_TRUE(page.starts_with("<!doctype html>"));
  EXPECT_TRUE(page.ends_with("</html>\n"));
  EXPECT_EQ(Run("report program.jsonl --capacity 40MiB -o -").out, page);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "none.html"));
}

TEST_F(MemreplayTest, Diff) {
  Write("grown.jsonl",
        std::string(kSmallProgram) + "{\"k\":\"a\",\"id\":9,\"b\":52428800,\"t\":\"new\"}\n");
  Run("replay program.jsonl --json >a.json");
  Run("replay program.jsonl --conf expandable_segments:True --torch 2.6 --json >b.json");
  Run("replay program.jsonl recording.jsonl --json >two.json");
  ExpectSession("diff",
                {"diff program.jsonl grown.jsonl", "diff program.jsonl program.jsonl",
                 "diff mechanisms/leak.txtpb mechanisms/shortage.txtpb", "diff a.json b.json",
                 "diff program.jsonl a.json", "diff program.jsonl", "diff program.jsonl none",
                 "diff two.json a.json", "diff recording.jsonl oom.jsonl --json"});
}

// Runs the schedules of examples/waste, each with the sentence that explains it.
TEST_F(MemreplayTest, Sweep) {
  Write("costs.json", kCosts);
  for (const std::string name : {"growth", "stranding", "stray_stream"}) {
    std::filesystem::copy_file(root_ / "examples/waste" / (name + ".txtpb"),
                               folder_ / (name + ".txtpb"));
  }
  ExpectSession("sweep",
                {"sweep growth.txtpb --conf max_split_size_mb:128,expandable_segments:True "
                 "--conf max_split_size_mb:128 --conf expandable_segments:True",
                 "sweep stranding.txtpb --top 5", "sweep stray_stream.txtpb --torch 2.6 --top 4",
                 "sweep stranding.txtpb --capacity 6GiB --top 3",
                 "sweep program.jsonl --conf '' --conf no_such_key:1 --capacity 40MiB",
                 "sweep stranding.txtpb --costs costs.json --conf '' --conf "
                 "expandable_segments:True",
                 "sweep stranding.txtpb --costs program.jsonl", "sweep recording.jsonl --top 2",
                 "sweep diverging.jsonl --top 1",
                 "sweep program.jsonl --conf expandable_segments:True --json"});
}

TEST_F(MemreplayTest, Fit) {
  std::filesystem::copy_file(root_ / "examples/waste/stranding.txtpb", folder_ / "stranding.txtpb");
  ExpectSession("fit", {"fit stranding.txtpb",
                        "fit stranding.txtpb --conf max_split_size_mb:20 --conf no_such_key:1",
                        "fit recording.jsonl --conf ''", "fit program.jsonl --conf '' --json"});
}

TEST_F(MemreplayTest, SeveralFiles) {
  const Outcome outcome =
      Run("replay program.jsonl no_such_file recording.jsonl --json --events-out-dir events");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.err, "memreplay: no_such_file: no such file\n");
  // The output has one line per input, in order.
  std::vector<std::string> lines;
  std::stringstream stream(outcome.out);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_NE(lines[0].find("\"file\":\"program.jsonl\""), std::string::npos);
  EXPECT_NE(lines[1].find("\"file\":\"no_such_file\""), std::string::npos);
  EXPECT_NE(lines[1].find("\"error\":\"no_such_file: no such file\""), std::string::npos);
  EXPECT_NE(lines[2].find("\"file\":\"recording.jsonl\""), std::string::npos);
  ASSERT_EQ(Run("replay program.jsonl --events-out alone.jsonl").status, 0);
  EXPECT_EQ(Read("events/program.jsonl.events.jsonl"), Read("alone.jsonl"));
  EXPECT_FALSE(Read("alone.jsonl").empty());
  EXPECT_FALSE(Read("events/recording.jsonl.events.jsonl").empty());
}

TEST_F(MemreplayTest, ConvertsThereAndBack) {
  for (const std::string extension : {"mrpb", "jsonl", "pickle"}) {
    SCOPED_TRACE(extension);
    const Outcome there = Run("convert recording.jsonl copy." + extension);
    EXPECT_EQ(there.status, 0) << there.err;
    const Outcome replayed = Run("replay copy." + extension + " --events-out -");
    EXPECT_EQ(replayed.status, 0) << replayed.err;
    EXPECT_EQ(replayed.out, Run("replay recording.jsonl --events-out -").out);
  }
}

TEST_F(MemreplayTest, SameInputSameBytes) {
  const std::string once = Run("replay program.jsonl --json").out;
  EXPECT_FALSE(once.empty());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Run("replay program.jsonl --json").out, once);
}

TEST_F(MemreplayTest, Synth) {
  const std::string tiny =
      "synth nanogpt --n_layer=1 --n_head=2 --n_embd=64 --block_size=64 --batch_size=4 "
      "--gradient_accumulation_steps=1 --vocab_size=1000 --dtype=float16 --eval_passes=2 ";
  Write("train.py",
        "# a config file\nbatch_size = 2\nn_head = 5 # as in the paper\nlearning_rate = 1e-3\n");
  ExpectSession("synth", {tiny + "--compile=False --summary", tiny + "--summary",
                          tiny + "--compile=False --summary --capacity 24MiB",
                          tiny + "--iterations=1 --compile=False -o run.mrpb", "replay run.mrpb",
                          tiny + "--iterations=0 --eval_last=False", "synth nanogpt train.py",
                          "synth nanogpt train.py --n_head=4 --n_layer=2 --json --iterations=0 "
                          "--eval_last=False",
                          "synth nanogpt --eval_batch_size=4",
                          "synth nanogpt --grad_checkpoint=True", "synth nanogpt --n_layers=4",
                          "synth nanogpt --n_layer=many", "synth nanogpt no_such_file.py",
                          "synth nanogpt --to=nothing", "synth gpt5", "synth"});
}

TEST_F(MemreplayTest, SynthProgram) {
  for (const std::string name : {"fsdp", "two_streams"}) {
    std::filesystem::copy_file(root_ / "examples" / (name + ".txtpb"), folder_ / (name + ".txtpb"));
  }
  Write("wrong.txtpb", "format: \"memsched\"\nversion: 1\nprogram { free: \"x\" }\n");
  ExpectSession("synth_program", {"synth fsdp.txtpb --check",
                                  "synth fsdp.txtpb --check --set prefetch=3 | head -1",
                                  "synth two_streams.txtpb --set steps=1",
                                  "synth two_streams.txtpb --json --set steps=2",
                                  "synth two_streams.txtpb -o two.mrpb",
                                  "replay two.mrpb | sed -n 2p",
                                  "replay two_streams.txtpb | sed -n 2p",
                                  "fit two_streams.txtpb | sed -n 2p",
                                  "sweep two_streams.txtpb --top 1 | sed -n 3p",
                                  "inspect fsdp.txtpb | sed -n 1,2p",
                                  "oom fsdp.txtpb --capacity 600MiB | sed -n 1,2p",
                                  "convert two_streams.txtpb - --to op_log",
                                  "replay fsdp.txtpb --set prefetch=3 | sed -n 2p",
                                  "fit fsdp.txtpb --set 'L=?' --capacity 1GiB | head -3",
                                  "replay fsdp.txtpb --set 'L=?'",
                                  "replay program.jsonl --set L=1",
                                  "fit --set 'L=?'",
                                  "sweep fsdp.txtpb --set",
                                  "oom fsdp.txtpb --set L=many",
                                  "fit fsdp.txtpb --set 'n=?'",
                                  "synth wrong.txtpb",
                                  "replay wrong.txtpb",
                                  "synth fsdp.txtpb --check --max_events 100",
                                  "synth fsdp.txtpb --max_events 0",
                                  "synth fsdp.txtpb --set prefetch",
                                  "synth fsdp.txtpb --set depth=1",
                                  "synth none.txtpb",
                                  "synth fsdp.txtpb two_streams.txtpb",
                                  "synth fsdp.txtpb --to nothing",
                                  "synth program.jsonl",
                                  "synth fsdp.txtpb --help"});
}

TEST_F(MemreplayTest, SynthLlama) {
  const std::string tiny =
      "synth llama --n_layers=1 --n_heads=4 --n_kv_heads=2 --dim=64 --ffn_dim=192 --seq_len=64 "
      "--batch_size=4 --gradient_accumulation_steps=1 --vocab_size=1000 --eval_passes=2 ";
  ExpectSession("synth_llama", {tiny + "--summary", tiny + "--iterations=0 --eval_last=False",
                                "synth llama --n_kv_heads=5", "synth llama --hidden_size=64",
                                "synth llama --n_layrs=64", "synth llama --help"});
}

// The name of a model stands in place of a file.
TEST_F(MemreplayTest, Models) {
  const std::string tiny =
      " nanogpt train.py --n_layer=1 --n_head=2 --n_embd=64 --block_size=64 "
      "--gradient_accumulation_steps=1 --vocab_size=1000 --compile=False ";
  Write("train.py", "batch_size = 4\n");
  ExpectSession(
      "models",
      {"replay" + tiny, "oom" + tiny + "--capacity 24MiB",
       "sweep" + tiny + "--conf expandable_segments:True --conf max_split_size_mb:21", "fit" + tiny,
       "fit" + tiny + "--batch_size=? --capacity 64MiB",
       "fit" + tiny + "--batch_size=? --capacity 32MiB --conf max_split_size_mb:21 --json",
       "fit" + tiny + "--block_size=? --capacity 4MiB", "fit" + tiny + "--batch_size=?",
       "fit" + tiny + "--batch_size=? --block_size=? --capacity 4MiB",
       "fit" + tiny + "--capacity 4MiB", "replay" + tiny + "--batch_size=?",
       "replay" + tiny + "--eval_batch_size=1", "replay" + tiny + "--batch_size"});
}

}  // namespace
}  // namespace memreplay

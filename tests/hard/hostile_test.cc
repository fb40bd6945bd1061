// Checks inputs that were made to hurt: they end in an answer or in one line, within 2 GB of
// address space and 10 seconds of the processor.
#include <pty.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "tests/fuzz/mutated_recording.h"
#include "tests/program.h"

namespace memreplay {
namespace {

constexpr char kLimits[] = "ulimit -v 2000000; ulimit -t 60;";

class HostileTest : public Program {
 protected:
  // Runs every command that reads `name`.
  void ExpectSurvived(const std::string& name, const std::string& flags = "") {
    const std::string commands[] = {"inspect ",
                                    "inspect --deep ",
                                    "replay ",
                                    "oom ",
                                    "sweep ",
                                    "convert --to flat_jsonl ",
                                    "fit ",
                                    "report -o /dev/null ",
                                    "diff " + name + " "};
    for (const std::string& command : commands) {
      if (!flags.empty() && command != "replay ") continue;
      const std::string arguments = command + name + (command[0] == 'c' ? " /dev/null" : "") +
                                    (flags.empty() ? "" : " " + flags);
      Reads(arguments);
    }
  }
  // Returns whether `arguments`, which read a file, do not refuse it.
  bool Reads(const std::string& arguments) {
    const Outcome outcome = Run(arguments, kLimits);
    ExpectDecent(outcome, arguments);
    EXPECT_LT(outcome.seconds, 10) << arguments;
    return outcome.status != 2;
  }
  // Runs the command lines of the fuzzer, which have more flags.
  void ExpectAnswers(const std::string& name) {
    for (const std::vector<std::string>& words : fuzz::AttackedCommands()) {
      const bool takes_two = std::any_of(
          words.begin(), words.end(), [](const auto& word) { return word.starts_with("OTHER"); });
      if (takes_two) continue;
      std::string arguments;
      for (const std::string& word : words) {
        arguments += word == "FILE" ? " " + name : " '" + word + "'";
      }
      Reads(arguments);
    }
  }
  // Checks what the reader refuses after some time: one command that reads it stands for all, in
  // addition to the one that reads two files.
  void ExpectRefused(const std::string& name) {
    EXPECT_FALSE(Reads("inspect " + name)) << name;
    EXPECT_FALSE(Reads("diff " + name + " " + name)) << name;
  }
  void Shell(const std::string& command) {
    ASSERT_EQ(std::system(("cd '" + folder_.string() + "' && " + command).c_str()), 0) << command;
  }
};

// Runs the reproducers of the attack that this folder is about, if they are at hand.
TEST_F(HostileTest, Reproducers) {
  const char* const shared = std::getenv("MEMREPLAY_SHARED");
  const std::filesystem::path files =
      std::filesystem::path(shared == nullptr ? "" : shared) / "data/hostile";
  if (shared == nullptr || !std::filesystem::is_directory(files)) {
    GTEST_SKIP() << "MEMREPLAY_SHARED names no folder with data/hostile";
  }
  for (const auto& entry : std::filesystem::directory_iterator(files)) {
    const std::string name = entry.path().filename().string();
    SCOPED_TRACE(name);
    if (name.starts_with("oom_")) {  // a message, no trace
      const Outcome outcome = Run("oom --message " + entry.path().string(), kLimits);
      ExpectDecent(outcome, name);
      EXPECT_LT(outcome.seconds, 10);
      continue;
    }
    const std::string file = entry.path().string();
    if (Reads("inspect " + file)) {
      ExpectSurvived(file);
      ExpectSurvived(file, "--conf expandable_segments:True --torch 2.3");
    } else {
      EXPECT_FALSE(Reads("diff " + file + " " + file));
    }
  }
}

// Runs those of the second attack: numbers that a file made up, and inputs that took time or memory
// out of all proportion.
TEST_F(HostileTest, ReproducersOfMadeUpNumbers) {
  const char* const shared = std::getenv("MEMREPLAY_SHARED");
  const std::filesystem::path files =
      std::filesystem::path(shared == nullptr ? "" : shared) / "data/hostile2";
  if (shared == nullptr || !std::filesystem::is_directory(files)) {
    GTEST_SKIP() << "MEMREPLAY_SHARED names no folder with data/hostile2";
  }
  for (const auto& entry : std::filesystem::directory_iterator(files)) {
    SCOPED_TRACE(entry.path().filename().string());
    std::string file = entry.path().string();
    if (file.ends_with(".py")) {
      Shell("python3 '" + file + "' 3000 made");
      file = "made";
    }
    ExpectAnswers(file);
  }
}

std::string Flat(const std::string& header, const std::string& records) {
  return R"({"k":"h","format":"memsched-flat","version":1,"unit":"B","streams":1)" + header +
         "}\n" + records;
}

// Returns a recording's segments at its end, as "address size" each, with one block.
std::string WithSegments(const std::vector<std::pair<uint64_t, uint64_t>>& segments) {
  std::string records = R"({"k":"dev","final":true,"d":0})"
                        "\n";
  for (const auto& [address, size] : segments) {
    const std::string at =
        ",\"addr\":" + std::to_string(address) + ",\"b\":" + std::to_string(size);
    records += R"({"k":"seg")" + at + ",\"s\":0,\"p\":[0,0],\"d\":0}\n" + R"({"k":"blk")" + at +
               ",\"req\":" + std::to_string(size) + ",\"state\":\"active_allocated\"}\n";
  }
  return Flat(R"(,"recorded":true,"devices":1,"layout":["device_traces","block_addresses"])",
              records);
}

constexpr uint64_t kBase = 0x7f0000000000;
constexpr uint64_t kMiB = 1 << 20;

TEST_F(HostileTest, SegmentsThatNoDriverHandsOut) {
  const std::vector<std::pair<uint64_t, uint64_t>> impossible[] = {
      {{kBase, 20 * kMiB}, {kBase + 19 * kMiB, 20 * kMiB}},   // overlap by 1 MiB
      {{kBase, 20 * kMiB}, {kBase, 20 * kMiB}},               // the same twice
      {{kBase, 2 * kMiB}, {uint64_t{1} << 62, 20 * kMiB}},    // no address
      {{kBase, (uint64_t{1} << 63) - 512}},                   // ends beyond every address
      {{kBase, 2 * kMiB}, {~uint64_t{0} - 511, 1024 * kMiB}}  // and wraps around
  };
  for (const auto& segments : impossible) {
    Write("file.jsonl", WithSegments(segments));
    const Outcome outcome = Run("inspect file.jsonl", kLimits);
    EXPECT_EQ(outcome.status, 1) << outcome.out;
    EXPECT_NE(outcome.out.find("a segment overlaps another, or ends beyond every address"),
              std::string::npos)
        << outcome.out;
    ExpectAnswers("file.jsonl");
  }
}

TEST_F(HostileTest, SegmentsThatADeviceHasNoRoomFor) {
  for (const auto& segments : std::vector<std::vector<std::pair<uint64_t, uint64_t>>>{
           {{kBase, 2048 * 1024 * kMiB}},                          // 2 TiB
           {{kBase, 3 * kMiB / 2}, {kBase + 3 * kMiB / 2, kMiB}},  // share a unit of 2 MiB
           {{512, 20 * kMiB}, {kBase + 512, 20 * kMiB}}}) {        // nowhere near a whole one
    Write("file.jsonl", WithSegments(segments));
    ExpectAnswers("file.jsonl");
  }
}

// 2^62 and what follows are the marks by which a replay knows the start's cached blocks again.
TEST_F(HostileTest, RequestedSizesThatLookLikeMarks) {
  std::string file = WithSegments({{kBase, 20 * kMiB}});
  for (const std::string requested : {"4611686018427387904", "4611686018427387999"}) {
    const std::string at = ",\"addr\":" + std::to_string(kBase) + ",\"b\":" + requested;
    std::string events;
    for (const std::string kind : {R"({"k":"f")", R"({"k":"fx","a":"free_completed")"}) {
      events += kind + at + ",\"s\":0,\"d\":0}\n";
    }
    Write("file.jsonl", file + events);
    ExpectAnswers("file.jsonl");
  }
}

TEST_F(HostileTest, SizesThatNoDeviceHas) {
  for (const std::string log :
       {"0 4611686018427387904\n1 512\n", "0 1152921504606846464\n1 1152921504606846464\n2 512\n",
        "2 18446744073709551104\n3 512\n5 1048576\n5 -1048576\n2 -9223372036854775807\n6 3145728\n",
        "0 140737488355328\n1 140737488355328\n2 140737488355328\n0 -140737488355328\n"}) {
    Write("file.oplog", log);
    ExpectAnswers("file.oplog");
  }
}

TEST_F(HostileTest, ADeviceOfMoreMemoryThanThereIs) {
  Write("file.jsonl", Flat(R"(,"total":9223372036854775808,"conf":"expandable_segments:True")",
                           "{\"k\":\"a\",\"id\":2,\"b\":28897597}\n"));
  ExpectAnswers("file.jsonl");
  const Outcome outcome = Run("replay file.jsonl", kLimits);
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("at most 281474976710656 bytes (256 TiB), found 9223372036854775808"),
            std::string::npos)
      << outcome.err;
  Write("program.jsonl", kSmallProgram);  // of several files, the error names the one
  for (const std::string command : {"replay", "inspect --deep", "sweep --together", "fit"}) {
    const Outcome several = Run(command + " program.jsonl file.jsonl", kLimits);
    EXPECT_EQ(several.status, 2);
    EXPECT_TRUE(several.err.starts_with("memreplay: file.jsonl: the file's device memory: "))
        << command << several.err;
  }
}

TEST_F(HostileTest, OneTraceListForTwoDevices) {
  using std::string_literals::operator""s;
  Write("shared.pickle",
        "\x80\x04}(\x8c\x08segments]\x8c\x0d"
        "device_traces](]\x94}(\x8c\x06"
        "action\x8c\x05"
        "alloc\x8c\x04"
        "addrK\x01\x8c\x04sizeM\0\x02\x8c\x06streamK\0\x8c\x06"
        "frames]uah\0eu."s);
  EXPECT_LE(Run("inspect shared.pickle").status, 1);
  ExpectSurvived("shared.pickle");
}

TEST_F(HostileTest, ARequestBeyondAReservation) {
  Write("2TiB.oplog", "0 2199023255552\n");
  ExpectSurvived("2TiB.oplog", "--conf expandable_segments:True --torch 2.3");
}

// These are values of one byte each that take many in memory.
TEST_F(HostileTest, PicklesThatSwell) {
  using std::string_literals::operator""s;
  for (const std::string& value :
       {"]"s, "N"s, "}"s, ")"s, "K\1"s, "\x8c\1a\x94"s, "]\x94"s, "h\0"s}) {
    SCOPED_TRACE(value);
    std::string values = value;
    while (values.size() < 25'000'000) values += values;
    values.resize(25'000'000 / value.size() * value.size());
    Write("bomb.pickle", "\x80\4\x8c\1x\x94](" + values + "e.");
    const Outcome outcome = Run("replay bomb.pickle", kLimits);
    ExpectDecent(outcome, value);
    EXPECT_LT(outcome.seconds, 10);
    EXPECT_LT(outcome.memory_kb, 4 * 25'000'000 / 1024 + (64 << 10));
  }
  Shell("gzip -1 bomb.pickle");
  ExpectRefused("bomb.pickle.gz");
}

// A file of n bytes unpacks to 1000 n.
TEST_F(HostileTest, CompressedZeros) {
  Shell("head -c 20000000 /dev/zero | gzip -9 >zeros.gz");
  Shell("{ printf '0 '; head -c 20000000 /dev/zero | tr '\\0' '1'; } | gzip -9 >digits.gz");
  ExpectSurvived("zeros.gz");
  ExpectSurvived("digits.gz");
}

TEST_F(HostileTest, ProgramsThatAllowThemselvesTooMuch) {
  const std::string head = "format: \"memsched\"\nversion: 1\n";
  Write("events.txtpb", head +
                            "max_events: 18446744073709551615\nprogram { repeat: "
                            "\"9000000000000000000\" body { mark: \"x\" } }\n");
  Write("marks.txtpb", head + "program { repeat: \"1000000\" index: \"i\" body { mark: \"" +
                           std::string(1000, 'A') + "{i}\" } }\n");
  std::string deep = "alloc: { name: \"x\" bytes: \"1\" }";
  for (int i = 0; i < 90; ++i) {
    deep = "phase: \"" + std::string(600, 'A') + "\" body { " + deep + " }";
  }
  Write("phases.txtpb", head + "program { " + deep + " }\n");
  for (const std::string name : {"events.txtpb", "phases.txtpb"}) {
    ExpectSurvived(name);
    EXPECT_EQ(Run("replay " + name, kLimits).status, 2) << name;
  }
  ExpectRefused("marks.txtpb");
  // Loops without events, in a schedule that may have a thousand million of them.
  const std::string most = "9223372036854775807";
  Write("loops.txtpb", head + "max_events: 1000000000\nprogram { repeat: \"" + most +
                           "\" body { repeat: \"" + most + "\" body { repeat: \"" + most +
                           "\" } } }\n");
  ExpectRefused("loops.txtpb");
  const Outcome together = Run("sweep loops.txtpb loops.txtpb --together --jobs 1", kLimits);
  EXPECT_EQ(together.status, 2);
  EXPECT_TRUE(together.err.starts_with("memreplay: loops.txtpb: line 4, ")) << together.err;
  EXPECT_LT(together.seconds, 2);
}

// A schedule that says how many events it has is refused before it has them.
TEST_F(HostileTest, ProgramsThatSayThatTheyAreTooLong) {
  const std::string head =
      "format: \"memsched\"\nversion: 1\nparams { key: \"n\" value: 5000001 }\n";
  Write("loop.txtpb", head +
                          "program { repeat: \"n\" body { alloc: \"a\" bytes: \"1\" } body { free: "
                          "\"a\" } }\n");
  Write("random.txtpb",
        head +
            "program { random { ops: \"2*n\" size { dist: \"uniform\" min: \"1\" max: "
            "\"9\" } lifetime { dist: \"uniform\" min: \"1\" max: \"9\" } } }\n");
  for (const std::string name : {"loop.txtpb", "random.txtpb"}) {
    const Outcome outcome = Run("sweep " + name + " " + name + " --together --jobs 1", kLimits);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.err, "memreplay: " + name +
                               ": line 4, column 11: program[0]: expected at most 10000000 events "
                               "(max_events), found more\n");
    EXPECT_LT(outcome.seconds, 0.5);
  }
}

// Each value has more events than the one before, and all of them fit.
TEST_F(HostileTest, ASearchForAValueThatFitsHasAnEnd) {
  Write("program.txtpb",
        "format: \"memsched\"\nversion: 1\ndevice { total: 1073741824 }\nparams { key: \"n\" "
        "value: 1 }\n"
        "program { repeat: \"n\" body { alloc: \"a\" bytes: \"1MiB\" } body { free: \"a\" } }\n");
  const Outcome outcome = Run("fit program.txtpb --set n=?", kLimits);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("tried; trying all would take too many runs"), std::string::npos)
      << outcome.out;
  EXPECT_LT(outcome.seconds, 20);
}

TEST_F(HostileTest, TheMemoryLimitEndsWithOneLine) {
  Write("events.txtpb",
        "format: \"memsched\"\nversion: 1\nmax_events: 100000000\nprogram { repeat: \"50000000\" "
        "body { mark: \"x\" } }\n");
  const Outcome outcome = Run("replay events.txtpb --memory-limit 128MiB");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.err,
            "memreplay: this needs more than 128 MiB of memory, the current limit; --memory-limit "
            "SIZE sets another\n");
  EXPECT_LT(outcome.memory_kb, 152u << 10);
  EXPECT_EQ(Run("inspect events.txtpb --memory-limit 1").status, 2);
  EXPECT_EQ(Run("inspect events.txtpb --memory-limit").status, 2);
  EXPECT_EQ(Run("inspect events.txtpb --memory-limit much").status, 2);
}

// What a helping thread would have done, the calling one does.
TEST_F(HostileTest, ThreadsThatTheMemoryLimitHasNoRoomFor) {
  Write("program.jsonl", kSmallProgram);
  for (const std::string arguments :
       {"sweep program.jsonl", "report program.jsonl -o /dev/null --search", "fit program.jsonl"}) {
    const Outcome outcome = Run(arguments + " --jobs 40 --memory-limit 64MiB");
    EXPECT_LE(outcome.status, 1) << arguments << outcome.err;
    EXPECT_EQ(outcome.err, "");
  }
}

TEST_F(HostileTest, NamesAndFoldersThatCannotBe) {
  const Outcome no_folder =
      Run("fit script '--batch_size=?' --card rtx-4090 -- train.py", "export TMPDIR=/nonexistent;");
  EXPECT_EQ(no_folder.status, 2);
  EXPECT_TRUE(no_folder.err.starts_with(
      "memreplay: fit script: there is no folder for temporary files (TMPDIR): "))
      << no_folder.err;
  const Outcome long_name = Run("record --card rtx-4090 " + std::string(300, 'a'),
                                "export XDG_CACHE_HOME=\"$PWD/cache\";");
  EXPECT_EQ(long_name.status, 2);
  EXPECT_TRUE(long_name.err.ends_with(": File name too long\n")) << long_name.err;
}

// A report that another program wrote, or nobody.
TEST_F(HostileTest, ReportsThatAreReadAgain) {
  const std::string head = R"({"schema_version": 4, "command": "sweep", "devices": [{"ooms": )";
  Write("sane.json", head + "1}]}\n");
  Write("far.json", head + "\"-9223372036854775808\"}]}\n");
  EXPECT_EQ(Run("diff sane.json sane.json").status, 0);
  const Outcome far = Run("diff sane.json far.json");
  EXPECT_EQ(far.status, 2);
  EXPECT_NE(far.err.find("far.json: devices.ooms: expected a number within 2^56, found -9.2"),
            std::string::npos)
      << far.err;
  Write("red.json", head + R"(2, "conf": "\u001b[31m"}]})" + "\n");
  const Outcome red = Run("diff sane.json red.json");
  EXPECT_EQ(red.status, 0) << red.err;
  EXPECT_NE(red.out.find("'?[31m'"), std::string::npos) << red.out;
  // Numbers within 2^56 whose sum needs more than 64 bits.
  std::string many;
  const std::string row =
      R"({"peak_reserved_bytes": "72057594037927936", "ooms": "7205759403792793"})";
  for (int i = 0; i < 300; ++i) {
    many += R"({"schema_version": 4, "command": "sweep", "file": "rank)" + std::to_string(i) +
            R"(", "devices": [{"sweep": {"current": )" + row + R"(, "rows": [)" + row + "]}}]}\n";
  }
  Write("many.json", many);
  const Outcome sum = Run("sweep many.json --together");
  EXPECT_EQ(sum.status, 1) << sum.err;
  EXPECT_NE(sum.out.find("; 2.00 EiB instead of 2.00 EiB in total"), std::string::npos) << sum.out;
}

// There are more than the 4 million events that are kept, at 40 bytes each.
TEST_F(HostileTest, ALongProgramKeepsNoEvents) {
  Write("long.txtpb",
        "format: \"memsched\"\nversion: 1\nmax_events: 100000000\nprogram { repeat: \"2200000\" "
        "body { alloc: \"a\" bytes: \"1MiB\" } body { free: \"a\" } }\n");
  for (const std::string command : {"replay", "oom", "inspect"}) {
    const Outcome outcome = Run(command + " long.txtpb --memory-limit 256MiB");
    EXPECT_EQ(outcome.status, 0) << command << outcome.err;
    EXPECT_NE(outcome.out.find(": schedule (text proto), 1 device\ndevice 0: "), std::string::npos);
    EXPECT_LT(outcome.memory_kb, 256u << 10);
  }
}

TEST_F(HostileTest, InputsWithoutAnEnd) {
  Write("program.jsonl", kSmallProgram);
  for (const std::string arguments :
       {"oom --message /dev/zero", "synth nanogpt /dev/zero",
        "sweep program.jsonl --costs /dev/zero", "replay /dev/zero", "inspect /dev/zero",
        "diff /dev/zero program.jsonl", "diff program.jsonl /dev/zero",
        "convert /dev/zero out.jsonl", "synth /dev/zero", "report /dev/zero -o /dev/null",
        "fit /dev/zero", "oom /dev/urandom", "lint </dev/zero"}) {
    const Outcome outcome = Run(arguments, "ulimit -t 30;");
    EXPECT_LE(outcome.status, 2) << arguments << outcome.err;
    EXPECT_LT(outcome.seconds, 10) << arguments;
  }
}

// Another process dumps again over the file that is being read.
TEST_F(HostileTest, AFileThatShrinksWhileItIsRead) {
  std::string log;
  for (int i = 0; i < 2'000'000; ++i) log += std::to_string(i) + " 512\n";
  for (int i = 0; i < 3; ++i) {
    Write("growing.oplog", log);
    const Outcome outcome = Program::Shell("'" + binary_ + R"(' inspect growing.oplog & reader=$!
        until grep -q growing.oplog /proc/$reader/maps || ! kill -0 $reader; do :; done 2>/dev/null
        truncate -s 4096 growing.oplog; wait $reader)");
    ExpectDecent(outcome, std::to_string(i));
    EXPECT_EQ(outcome.status, 2);
    EXPECT_NE(outcome.err.find("/growing.oplog: the file became shorter while it was being read"),
              std::string::npos)
        << outcome.err;
  }
}

TEST_F(HostileTest, NothingOfAFileNameReachesATerminalRaw) {
  const std::string name =
      "a\x1b[31m\xc2\x9b"
      "31m\xe2\x80\xae"
      "b\n";
  ASSERT_EQ(mkfifo((folder_ / name).c_str(), 0666), 0);
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    (void)!chdir(folder_.c_str());
    execl(binary_.c_str(), "memreplay", "inspect", name.c_str(), nullptr);
    _exit(98);
  }
  std::ofstream pipe(folder_ / name);  // when the other end is open too
  std::string shown;
  char buffer[4096];
  for (ssize_t got; (got = read(terminal, buffer, sizeof(buffer))) > 0;) {
    shown.append(buffer, static_cast<size_t>(got));
    if (pipe.is_open() && shown.find("reading a?[31m") != std::string::npos) {
      pipe << "nonsense";
      pipe.close();
    }
  }
  waitpid(child, nullptr, 0);
  close(terminal);
  EXPECT_NE(shown.find("reading a?[31m"), std::string::npos) << shown;
  EXPECT_EQ(shown.find("\x1b[31m"), std::string::npos);
  EXPECT_EQ(shown.find("\xc2\x9b"), std::string::npos);
  EXPECT_EQ(shown.find("\xe2\x80\xae"), std::string::npos);
}

// The fuzzer found that Protobuf's parser printed its objections by itself, in lines of its own.
TEST_F(HostileTest, ATextThatIsNotUtf8) {
  Write("recording.jsonl", kSmallRecording);
  ASSERT_EQ(Run("convert recording.jsonl recording.mrpb").status, 0);
  std::string bytes = Read("recording.mrpb");
  const size_t layout = bytes.find("device_traces");
  ASSERT_NE(layout, std::string::npos);
  bytes[layout] = '\xff';
  Write("recording.mrpb", bytes);
  EXPECT_EQ(Run("inspect recording.mrpb").status, 2);
  ExpectSurvived("recording.mrpb");
}

TEST_F(HostileTest, AbsurdNumbersOfAMessage) {
  Write("message.txt",
        "CUDA out of memory. Tried to allocate 1.50 GiB (GPU 0; 0 GiB total capacity; "
        "9223372036854775807 GiB already allocated; 1.00 bytes free; 0 GiB reserved in total by "
        "PyTorch)");
  const Outcome outcome = Run("oom --message message.txt");
  EXPECT_EQ(outcome.status, 1) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("TOO LARGE: ")) << outcome.out;
  Write("fraction.txtpb",
        "format: \"memsched\"\nversion: 1\nfraction: nan\nprogram { mark: \"x\" }\n");
  EXPECT_NE(Run("inspect fraction.txtpb").err.find("found nan"), std::string::npos);
}

}  // namespace
}  // namespace memreplay

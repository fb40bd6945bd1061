// Checks that outputs are complete or not there, whatever fails and whatever kills the binary.
#include <signal.h>

#include <algorithm>

#include "tests/program.h"

namespace memreplay {
namespace {

struct Writer {
  const char* name;
  const char* arguments;  // writes "out"
};
// These are all commands that write a file, except those that need a GPU.
constexpr Writer kWriters[] = {
    {"convert", "convert recording.jsonl out --to torch_snapshot_pickle"},
    {"convert to JSON lines", "convert program.jsonl out --to flat_jsonl"},
    {"report", "report recording.jsonl -o out"},
    {"events", "replay recording.jsonl --events-out out"},
    {"snapshot", "replay recording.jsonl --snapshot-out out"},
    {"synth a program", "synth program.txtpb --out out"},
    {"synth a model", "synth nanogpt --n_layer=1 --max_iters=1 --out out"},
};

constexpr char kOld[] = "the old content, which somebody needs";

class OutputTest : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    Write("recording.jsonl", kSmallRecording);
    Write("program.jsonl", kSmallProgram);
    Write("program.txtpb", "format: \"memsched\"\nversion: 1\nprogram { mark: \"x\" }\n");
    Write("out", kOld);
    before_ = Names();
  }
  std::vector<std::string> before_;
};

TEST_F(OutputTest, EveryWriterReplacesTheWholeFileAndKeepsItsPermissions) {
  for (const Writer& writer : kWriters) {
    SCOPED_TRACE(writer.name);
    Write("out", kOld);
    std::filesystem::permissions(
        Path("out"), std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    const Outcome outcome = Run(writer.arguments);
    EXPECT_LE(outcome.status, 1) << outcome.err;
    EXPECT_NE(Read("out"), kOld);
    EXPECT_FALSE(Read("out").empty());
    EXPECT_EQ(std::filesystem::status(Path("out")).permissions(),
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    EXPECT_EQ(Names(), before_);
  }
}

TEST_F(OutputTest, ANewFileHasThePermissionsOfTheMask) {
  std::filesystem::remove(Path("out"));
  EXPECT_EQ(Run("convert program.jsonl out --to flat_jsonl", "umask 027;").status, 0);
  EXPECT_EQ(std::filesystem::status(Path("out")).permissions(), std::filesystem::perms(0640));
}

TEST_F(OutputTest, LinksAreFollowed) {
  std::filesystem::remove(Path("out"));
  std::filesystem::create_symlink("real", Path("out"));
  EXPECT_EQ(Run("convert program.jsonl out --to flat_jsonl").status, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(Path("out")));
  EXPECT_TRUE(Read("real").starts_with("{\"k\":\"h\""));
}

// Runs the matrix of faults: each call that writes, maps or places a file fails once, at its first,
// second ... call, for every command that writes.
TEST_F(OutputTest, NoFaultLosesTheOldFile) {
  const std::string shim = std::filesystem::absolute("tests/hard/libfail_shim.so").string();
  int faults = 0;
  for (const Writer& writer : kWriters) {
    for (const char* const call : {"open", "write", "fsync", "close", "rename", "linkat", "fchmod",
                                   "mkostemps", "mmap", "fstat"}) {
      const std::string with = "export LD_PRELOAD='" + shim + "' FAIL_CALL=" + call;
      // Counts how often it is called.
      std::filesystem::remove(Path("count"));
      EXPECT_LE(Run(writer.arguments, with + " FAIL_AT=0 FAIL_COUNT=count;").status, 1);
      const size_t calls = Read("count").size();
      std::filesystem::remove(Path("count"));
      for (const int error : {ENOSPC, EIO}) {
        SCOPED_TRACE(std::string(writer.name) + ", " + call + ", errno " + std::to_string(error));
        for (size_t at = 1; at <= calls; ++at) {
          Write("out", kOld);
          const Outcome outcome =
              Run(writer.arguments, with + " FAIL_ERRNO=" + std::to_string(error) +
                                        " FAIL_AT=" + std::to_string(at) + ";");
          ++faults;
          ExpectDecent(outcome, "call " + std::to_string(at));
          const std::string content = Read("out");
          // Some faults harm nothing: the folder's fsync, a close after reading, a
          // file without a name that becomes one with a name.
          if (outcome.status == 2) {
            EXPECT_EQ(content, kOld) << "call " << at << ": " << outcome.err;
          } else {
            EXPECT_NE(content, kOld) << "call " << at;
            EXPECT_FALSE(content.empty()) << "call " << at;
          }
          EXPECT_EQ(Names(), before_) << "call " << at;
        }
      }
    }
  }
  RecordProperty("faults", faults);
  EXPECT_GT(faults, 100);
}

TEST_F(OutputTest, AShortWriteIsGoneOnWith) {
  const std::string shim = std::filesystem::absolute("tests/hard/libfail_shim.so").string();
  ASSERT_EQ(Run("convert recording.jsonl whole --to torch_snapshot_pickle").status, 0);
  ASSERT_EQ(Run("convert recording.jsonl out --to torch_snapshot_pickle",
                "export LD_PRELOAD='" + shim + "' FAIL_CALL=short_write FAIL_AT=1;")
                .status,
            0);
  EXPECT_EQ(Read("out"), Read("whole"));
}

TEST_F(OutputTest, AThreadThatDoesNotStartChangesNoAnswer) {
  const std::string shim = std::filesystem::absolute("tests/hard/libfail_shim.so").string();
  const std::string with = "export LD_PRELOAD='" + shim + "' FAIL_CALL=pthread_create";
  for (const std::string command :
       {"inspect recording.jsonl", "inspect --deep recording.jsonl", "replay recording.jsonl",
        "sweep program.jsonl", "fit program.jsonl", "report -o - recording.jsonl"}) {
    std::filesystem::remove(Path("count"));
    const std::string several = command + " --jobs 2";
    const Outcome usual = Run(several, with + " FAIL_AT=0 FAIL_COUNT=count;");
    EXPECT_LE(usual.status, 1);
    const size_t calls = Read("count").size();
    EXPECT_GT(calls, 0u) << command;
    std::vector<std::string> places = {"all"};
    for (size_t at = 1; at <= calls; ++at) places.push_back(std::to_string(at));
    for (const std::string& at : places) {
      SCOPED_TRACE(command + ", thread " + at);
      const Outcome outcome = Run(several, with + " FAIL_AT=" + at + ";");
      EXPECT_EQ(outcome.status, usual.status);
      EXPECT_EQ(outcome.out, usual.out);
      EXPECT_EQ(outcome.err, usual.err);
    }
  }
}

TEST_F(OutputTest, AFullDiskAndALimitOfTheFileSize) {
  for (const Writer& writer : kWriters) {
    SCOPED_TRACE(writer.name);
    Write("out", kOld);
    // SIGXFSZ is ignored: the write fails with EFBIG after half a KiB.
    const Outcome outcome = Run(writer.arguments, "trap '' XFSZ; ulimit -f 0;");
    EXPECT_EQ(Read("out"), kOld);
    EXPECT_EQ(Names(), before_);
    EXPECT_NE(outcome.status, 0);
  }
}

TEST_F(OutputTest, AnInputIsNeverAnOutput) {
  Write("copy.jsonl", kSmallRecording);
  std::filesystem::create_hard_link(Path("copy.jsonl"), Path("hard.jsonl"));
  std::filesystem::create_symlink("copy.jsonl", Path("soft.jsonl"));
  Write("train.py", "n_layer = 1\n");
  for (const std::string arguments :
       {"convert copy.jsonl copy.jsonl", "convert copy.jsonl hard.jsonl",
        "convert soft.jsonl copy.jsonl", "convert copy.jsonl ./soft.jsonl",
        "report copy.jsonl -o copy.jsonl", "report copy.jsonl -o hard.jsonl",
        "replay copy.jsonl --events-out copy.jsonl", "replay copy.jsonl --snapshot-out soft.jsonl",
        "convert copy.jsonl - --to flat_jsonl >>copy.jsonl",
        "synth program.txtpb --out program.txtpb", "synth nanogpt train.py --out train.py"}) {
    SCOPED_TRACE(arguments);
    const std::string program = Read("program.txtpb");
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_NE(outcome.err.find("is also an input"), std::string::npos) << outcome.err;
    EXPECT_EQ(Read("copy.jsonl"), kSmallRecording);
    EXPECT_EQ(Read("program.txtpb"), program);
    EXPECT_EQ(Read("train.py"), "n_layer = 1\n");
  }
}

TEST_F(OutputTest, AWriterThatRefusesLeavesTheOldFile) {
  const Outcome outcome = Run("convert program.jsonl out --to torch_snapshot_pickle");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("a schedule cannot be written as a snapshot"), std::string::npos);
  EXPECT_EQ(Read("out"), kOld);
  EXPECT_EQ(Names(), before_);
}

// After a kill at any call, the old file or the new one is there; of temporary files, at most one
// stays, after a SIGKILL, and it says whose it is.
TEST_F(OutputTest, KilledAtAnyCall) {
  const std::string shim = std::filesystem::absolute("tests/hard/libfail_shim.so").string();
  int killed = 0;
  for (const Writer& writer : kWriters) {
    Write("out", kOld);
    Run(writer.arguments);
    const std::string whole = Read("out");
    for (const std::string call : {"open", "write", "fsync", "linkat", "rename", "close"}) {
      for (const int signal : {SIGINT, SIGTERM, SIGKILL}) {
        for (int at = 1; at <= 3; ++at) {
          SCOPED_TRACE(std::string(writer.name) + ", " + call + " " + std::to_string(at) +
                       ", signal " + std::to_string(signal));
          Write("out", kOld);
          const Outcome outcome =
              Run(writer.arguments, "export LD_PRELOAD='" + shim + "' FAIL_CALL=" + call +
                                        " FAIL_SIGNAL=" + std::to_string(signal) +
                                        " FAIL_AT=" + std::to_string(at) + ";");
          if (outcome.status > 128) ++killed;
          const std::string content = Read("out");
          EXPECT_TRUE(content == kOld || content == whole) << content.size() << " bytes";
          for (const std::string& name : Names()) {
            const bool was = std::find(before_.begin(), before_.end(), name) != before_.end();
            EXPECT_TRUE(was || name.starts_with(".out.memreplay-")) << name;
            if (!was) std::filesystem::remove(Path(name));
          }
          if (outcome.status <= 128) break;  // it is not called that often
        }
      }
    }
  }
  RecordProperty("killed", killed);
  EXPECT_GT(killed, 100);
}

TEST_F(OutputTest, AClosedStandardOutputIsNotThePage) {
  const Outcome outcome = Run("report recording.jsonl -o page.html >&-");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_TRUE(Read("page.html").ends_with("</html>\n"))
      << Read("page.html")
             .substr(Read("page.html").size() - std::min<size_t>(100, Read("page.html").size()));
}

}  // namespace
}  // namespace memreplay

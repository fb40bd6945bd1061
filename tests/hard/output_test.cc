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
    for (const char* const call :
         {"open", "write", "fsync", "close", "rename", "linkat", "fchmod", "mmap", "fstat"}) {
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
    // Whether the caller ignores SIGXFSZ or not, the write fails with EFBIG.
    for (const std::string before : {"trap '' XFSZ; ulimit -f 0;", "ulimit -f 0;"}) {
      const Outcome outcome =
          Shell("(" + before + " '" + binary_ + "' " + writer.arguments + ") 2>&1 | cat >&2");
      EXPECT_EQ(Read("out"), kOld);
      EXPECT_EQ(Names(), before_);
      ExpectDecent(outcome, before);
      EXPECT_TRUE(outcome.err.ends_with(" out: cannot write: File too large\n")) << outcome.err;
    }
  }
  const Outcome outcome = Shell("(ulimit -f 0; exec '" + binary_ +
                                "' inspect recording.jsonl >printed) 2>&1 | cat >&2");
  EXPECT_EQ(outcome.err, "memreplay: standard output: cannot write: File too large\n");
}

// A page is larger than a pipe.
TEST_F(OutputTest, APipeThatNobodyReadsAnyMore) {
  // On standard output, the command ends as any other in a pipeline does; a pipe with a name is an
  // output that cannot be written.
  const Outcome printed =
      Shell("set -o pipefail; '" + binary_ + "' report recording.jsonl -o - | :");
  EXPECT_EQ(printed.status, 128 + SIGPIPE);
  EXPECT_EQ(printed.err, "");
  const Outcome outcome = Run("report recording.jsonl -o pipe", "mkfifo pipe; head -c 0 <pipe &");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.err, "memreplay: pipe: cannot write: Broken pipe\n");
  EXPECT_TRUE(std::filesystem::is_fifo(Path("pipe")));
}

// The temporary name does not depend on the length of the name, in file systems that know files
// without a name and in others.
TEST_F(OutputTest, TheLongestNames) {
  const std::string shim = std::filesystem::absolute("tests/hard/libfail_shim.so").string();
  std::string of_two_bytes;
  for (int i = 0; i < 127; ++i) of_two_bytes += "\xc3\xbc";
  for (const std::string& name : {std::string(236, 'a'), std::string(255, 'b'), of_two_bytes}) {
    for (const Writer& writer : kWriters) {
      for (const std::string& before :
           {std::string(), "export LD_PRELOAD='" + shim + "' FAIL_CALL=open FAIL_AT=1;"}) {
        SCOPED_TRACE(writer.name + (" to " + name) + " after " + before);
        std::string arguments = writer.arguments;
        arguments.replace(arguments.find(" out"), 4, " " + name);
        const Outcome outcome = Run(arguments, before);
        EXPECT_LE(outcome.status, 1) << outcome.err;
        EXPECT_FALSE(Read(name).empty());
        std::filesystem::remove(Path(name));
        EXPECT_EQ(Names(), before_);
      }
    }
  }
}

// The names that are made of an input's are cut to what a file system takes.
TEST_F(OutputTest, NamesMadeOfTheLongestNames) {
  const std::string stem(249, 'x');
  Write(stem + ".jsonl", kSmallRecording);
  std::filesystem::create_directory(Path("events"));
  const Outcome outcome = Run("replay " + stem + ".jsonl --events-out-dir events");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_FALSE(Read("events/" + stem.substr(0, 242) + ".events.jsonl").empty());
  Write(stem + "y.pkl", kSmallRecording);
  EXPECT_EQ(Run("report " + stem + "y.pkl").status, 0);
  EXPECT_FALSE(Read(stem + "y.html").empty());
}

TEST_F(OutputTest, TwoOutputsAreNeverOneFile) {
  std::filesystem::create_hard_link(Path("out"), Path("hard"));
  std::filesystem::create_symlink("out", Path("soft"));
  std::filesystem::create_symlink("missing", Path("dangling"));
  std::filesystem::create_directory(Path("one"));
  std::filesystem::create_directory(Path("two"));
  Write("one/a.jsonl", kSmallRecording);
  Write("two/a.jsonl", kSmallRecording);
  Write("two/b.jsonl", kSmallRecording);
  const std::vector<std::string> before = Names();
  for (const std::string arguments : {
           "replay recording.jsonl --snapshot-out z --events-out z",
           "replay recording.jsonl --snapshot-out z --events-out ./z",
           "replay recording.jsonl --snapshot-out z --events-out one/../z",
           "replay recording.jsonl --snapshot-out out --events-out hard",
           "replay recording.jsonl --snapshot-out out --events-out soft",
           "replay recording.jsonl --snapshot-out missing --events-out dangling",
           "replay recording.jsonl --snapshot-out - --events-out -",
           "replay recording.jsonl --snapshot-out - --events-out /dev/stdout",
           "replay recording.jsonl --snapshot-out out >>out",
           "replay recording.jsonl --events-out hard --json >>out",
           "replay one/a.jsonl two/a.jsonl --events-out-dir .",
           "report recording.jsonl -o out >>soft",
           "report one/a.jsonl two/a.jsonl -o out >>out",
           "report one two -o out >>out",
           "report one/a.jsonl one//a.jsonl ./one/a.jsonl one_a.jsonl",
           "synth program.txtpb --check -o -",
           "synth program.txtpb --json -o /dev/stdout",
           "synth program.txtpb --check -o out >>out",
           "synth nanogpt --n_layer=1 --max_iters=1 --summary -o -",
       }) {
    SCOPED_TRACE(arguments);
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_NE(outcome.err.find("is also another output"), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(Read("out"), kOld);
    EXPECT_EQ(Names(), before);
  }
  for (const std::string arguments : {"replay two --snapshot-out z", "replay two --events-out z",
                                      "replay recording.jsonl --json --snapshot-out -",
                                      "report recording.jsonl --json -o /dev/stdout",
                                      "gpu recording.jsonl --json --costs-out -"}) {
    SCOPED_TRACE(arguments);
    EXPECT_EQ(Run(arguments).status, 2);
    EXPECT_EQ(Names(), before);
  }
  // A device holds nothing that could be lost.
  EXPECT_EQ(Run("replay recording.jsonl --snapshot-out /dev/null --events-out /dev/null").status,
            0);
  EXPECT_EQ(Run("replay recording.jsonl --snapshot-out z >/dev/null").status, 0);
  // One output alone has standard output for itself.
  const Outcome snapshot = Run("replay recording.jsonl --snapshot-out -");
  EXPECT_EQ(snapshot.status, 0);
  EXPECT_EQ(snapshot.out, Read("z"));
}

TEST_F(OutputTest, AnInputOfAFolderIsNeverAnOutput) {
  std::filesystem::create_directory(Path("in"));
  Write("in/a.jsonl", kSmallRecording);
  for (const std::string arguments :
       {"replay in --events-out in/a.jsonl", "replay in --snapshot-out ./in/a.jsonl"}) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_NE(outcome.err.find("is also an input"), std::string::npos) << outcome.err;
    EXPECT_EQ(Read("in/a.jsonl"), kSmallRecording);
  }
}

// A name that the user did not give replaces pages of memreplay alone.
TEST_F(OutputTest, APageOfSomebodyElse) {
  const std::string theirs = "<!doctype html><title>a page about memreplay</title>";
  std::filesystem::create_directory(Path("pages"));
  for (const std::string page : {"recording.html", "pages/recording.html"}) {
    const std::string where = page == "recording.html" ? "" : " -o pages";
    Write(page, theirs);
    const Outcome outcome = Run("report recording.jsonl" + where);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.err, "memreplay: " + page +
                               ": was not written by memreplay and would be overwritten; name "
                               "another file with -o\n");
    EXPECT_EQ(Read(page), theirs);
    EXPECT_EQ(Run("report recording.jsonl -o " + page).status, 0);  // the user's word
    EXPECT_NE(Read(page), theirs);
    EXPECT_EQ(Run("report recording.jsonl" + where).status, 0);  // now it is a page of memreplay
    Write(page, "");
    EXPECT_EQ(Run("report recording.jsonl" + where).status, 0);
    EXPECT_FALSE(Read(page).empty());
  }
  Write("nanogpt.html", theirs);
  EXPECT_EQ(Run("report nanogpt --n_layer=1 --max_iters=1").status, 2);
  EXPECT_EQ(Read("nanogpt.html"), theirs);
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
            EXPECT_TRUE(was || name.starts_with(".memreplay-")) << name;
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

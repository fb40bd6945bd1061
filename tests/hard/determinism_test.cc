// Checks that the same input gives the same bytes, whatever the number of threads, and however
// often.
#include "tests/program.h"

namespace memreplay {
namespace {

class DeterminismTest : public Program {};

TEST_F(DeterminismTest, OneThreadAndSeveralSayTheSame) {
  std::string program = kSmallProgram;
  for (int i = 10; i < 400; ++i) {
    program += "{\"k\":\"a\",\"id\":" + std::to_string(i) +
               ",\"b\":" + std::to_string(1 + i * 7919 % 9000000) + "}\n";
    if (i % 3 != 0) program += "{\"k\":\"f\",\"id\":" + std::to_string(i) + "}\n";
  }
  for (int file = 0; file < 6; ++file) {
    Write("file" + std::to_string(file) + ".jsonl",
          program + "{\"k\":\"a\",\"id\":1000,\"b\":" + std::to_string(file * 1000000 + 1) + "}\n");
  }
  Write("recording.jsonl", kSmallRecording);
  const std::string files = "file0.jsonl file1.jsonl file2.jsonl file3.jsonl recording.jsonl";
  const std::vector<std::string> commands = {
      "replay " + files + " --json", "inspect --deep " + files, "oom " + files,
      "sweep file0.jsonl --json",    "fit file1.jsonl",         "report -o - file2.jsonl",
      "report -o - " + files,        "inspect recording.jsonl", "replay recording.jsonl --json"};
  for (const std::string& command : commands) {
    SCOPED_TRACE(command);
    // The thread sanitizer, under which this test runs too, needs any amount of addresses.
    const std::string arguments = command + " --memory-limit 0";
    // This sets --jobs, and the processors that the process may use, because some commands count
    // those.
    const Outcome one = Run(arguments + " --jobs 1", "taskset -p -c 0 $$ >/dev/null;");
    EXPECT_LE(one.status, 1) << one.err;
    EXPECT_FALSE(one.out.empty());
    for (int round = 0; round < 10; ++round) {
      const Outcome several = Run(arguments + " --jobs 2");
      EXPECT_EQ(several.status, one.status);
      ASSERT_EQ(several.out, one.out) << "round " << round;
      ASSERT_EQ(several.err, one.err) << "round " << round;
    }
  }
}

}  // namespace
}  // namespace memreplay

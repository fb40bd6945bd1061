// memreplay as a process among hostile files: a folder of its own, runs with limits.
#ifndef MEMREPLAY_TESTS_HARD_PROGRAM_H_
#define MEMREPLAY_TESTS_HARD_PROGRAM_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace memreplay {

struct Outcome {
  int status = -1;  // 128 + signal
  std::string out;
  std::string err;
  double seconds = 0;      // of the processor
  uint64_t memory_kb = 0;  // resident at most
};

class Program : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  void Write(const std::string& name, const std::string& content);
  std::string Read(const std::string& name);
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  // Names in the folder, sorted, without what Run() leaves.
  std::vector<std::string> Names();

  // `arguments` are a piece of shell, run in the folder after `before`
  // ("ulimit -v 2000000;"). Files are named relative to the folder.
  Outcome Run(const std::string& arguments, const std::string& before = "");
  // Exit 0, 1 or 2; of 2 one line on stderr that begins with "memreplay: ".
  void ExpectDecent(const Outcome& outcome, const std::string& what);

  std::string binary_;
  std::filesystem::path folder_;
};

// A recording, a program for the allocator, and an out of memory message, all valid.
extern const char kSmallRecording[];
extern const char kSmallProgram[];

}  // namespace memreplay

#endif  // MEMREPLAY_TESTS_HARD_PROGRAM_H_

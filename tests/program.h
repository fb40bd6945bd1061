// Runs memreplay as a process in a folder of its own.
#pragma once

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
  // Returns the names in the folder, sorted, without what Run() leaves.
  std::vector<std::string> Names();

  // Runs a piece of shell in the folder.
  Outcome Shell(const std::string& command);
  // Runs memreplay in place of the shell, which did `before` first ("ulimit -v 2000000;").
  Outcome Run(const std::string& arguments, const std::string& before = "");
  // Expects exit status 0, 1 or 2; with 2, one line on stderr that begins with "memreplay: ".
  void ExpectDecent(const Outcome& outcome, const std::string& what);

  std::string binary_;
  std::filesystem::path folder_;
};

// A recording from its first allocation on: a small block is freed next to one that stays, and
// there is a large one.
extern const char kSmallRecording[];
// The largest block is split once the 30 MiB are free, so reserved memory differs from setting to
// setting.
extern const char kSmallProgram[];

}  // namespace memreplay

// The program as a user runs it: a folder of its own, a shell, golden sessions.
#ifndef MEMREPLAY_TESTS_CLI_SESSION_H_
#define MEMREPLAY_TESTS_CLI_SESSION_H_

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/golden.h"

namespace memreplay {

class SessionTest : public testing::Test {
 protected:
  void SetUp() override {
    binary_ = std::filesystem::absolute("cli/memreplay").string();
    root_ = std::filesystem::current_path();
    directory_ = std::filesystem::path(testing::TempDir()) /
                 testing::UnitTest::GetInstance()->current_test_info()->test_suite_name();
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }

  void Write(const std::string& name, const std::string& content) {
    std::ofstream(directory_ / name, std::ios::binary) << content;
  }
  std::string Read(const std::string& name) {
    std::ifstream file(directory_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  struct Outcome {
    int status = -1;
    std::string out;
    std::string err;
  };

  // `arguments` are a piece of shell; files are named relative to the directory.
  Outcome Run(const std::string& arguments) {
    const std::string command = "cd '" + directory_.string() + "' && { '" + binary_ + "' " +
                                arguments + "\n} >stdout.tmp 2>stderr.tmp </dev/null";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), Read("stdout.tmp"),
            Read("stderr.tmp")};
  }

  // Runs each and compares the lot with golden/NAME.txt.
  void ExpectSession(const std::string& name, const std::vector<std::string>& runs) {
    std::string session;
    for (const std::string& arguments : runs) {
      const Outcome outcome = Run(arguments);
      session += "$ memreplay " + arguments + "\n" + outcome.out;
      if (!outcome.err.empty()) session += "(stderr) " + outcome.err;
      session += "(exit " + std::to_string(outcome.status) + ")\n\n";
    }
    ExpectGolden("tests/cli/golden/" + name + ".txt", session);
  }

  std::string binary_;
  std::filesystem::path root_;
  std::filesystem::path directory_;
};

}  // namespace memreplay

#endif  // MEMREPLAY_TESTS_CLI_SESSION_H_

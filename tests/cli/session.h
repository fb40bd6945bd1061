// Golden sessions: runs the binary as a user does.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/golden.h"
#include "tests/program.h"

namespace memreplay {

class SessionTest : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    root_ = std::filesystem::current_path();
  }

  // `arguments` may continue with more shell.
  Outcome Run(const std::string& arguments) { return Shell("'" + binary_ + "' " + arguments); }

  // Runs each and compares all output with golden/NAME.txt.
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

  std::filesystem::path root_;
};

}  // namespace memreplay

// memreplay fleet and memreplay mcp: the commands that run in Python, where their libraries are.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "cli/commands/command.h"
#include "record/interpreter.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr char kStart[] =
    "import sys\n"
    "try:\n"
    "    from memreplay.__main__ import main\n"
    "except ImportError as error:\n"
    "    print(f'memreplay: {sys.argv[1]}: {sys.executable} has no package memreplay ({error}); '\n"
    "          'pip install the wheel there', file=sys.stderr)\n"
    "    sys.exit(2)\n"
    "sys.exit(main(sys.argv[1:]))\n";

// Replaces this process by Python. Returns only if that fails.
absl::Status BecomePython(const std::string& command, const std::vector<std::string>& words) {
  const absl::StatusOr<std::vector<std::string>> args = FlagSet(command, "").ParseKnown(words);
  if (!args.ok()) return Within(command, args.status());
  std::error_code error;
  const std::filesystem::path folder = ProgramFolder();
  // In a checkout, the binary is in .bazel/ next to python/.
  const std::filesystem::path sources = folder.parent_path() / "python";
  if (std::filesystem::exists(sources / "memreplay/__main__.py", error)) {
    const char* path = std::getenv("PYTHONPATH");
    const std::string joined =
        path == nullptr || *path == 0 ? sources.string() : StrCat(sources.string(), ":", path);
    setenv("PYTHONPATH", joined.c_str(), 1);
  }
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!self.empty()) setenv("MEMREPLAY_PROGRAM", self.c_str(), 0);
  const std::string python = PythonWith("");
  std::vector<const char*> call = {python.c_str(), "-c", kStart, command.c_str()};
  for (const std::string& arg : *args) call.push_back(arg.c_str());
  call.push_back(nullptr);
  execvp(python.c_str(), const_cast<char* const*>(call.data()));
  return absl::NotFoundError(
      StrCat(command, ": ", python, " cannot be started: ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<int> RunFleet(const CommandLine& line) { return BecomePython("fleet", line.args); }
absl::StatusOr<int> RunMcp(const CommandLine& line) { return BecomePython("mcp", line.args); }

}  // namespace memreplay

// Runs every command, and every model of synth, with flags that have values which nobody means:
// each ends with 0, 1 or 2, within 2 GB of address space and 10 seconds of the processor. The flags
// are those that --help lists. The seed is fixed; a longer run is
//
//   MEMREPLAY_ATTACKS=2000 MEMREPLAY_SEED=7 bazel-bin/tests/fuzz/command_lines_test
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <sstream>

#include "absl/strings/str_split.h"
#include "tests/program.h"

namespace memreplay {
namespace {

constexpr const char* kValues[] = {"",
                                   "0",
                                   "-1",
                                   "1",
                                   "3",
                                   "1000000",
                                   "2147483647",
                                   "2147483648",
                                   "9223372036854775807",
                                   "-9223372036854775808",
                                   "18446744073709551615",
                                   "18446744073709551616",
                                   "1e308",
                                   "nan",
                                   "-inf",
                                   "0.5",
                                   "?",
                                   "True",
                                   "False",
                                   "none",
                                   ",",
                                   ":",
                                   "=",
                                   "-",
                                   "--",
                                   "/dev/null",
                                   "/nowhere/file",
                                   "256TiB",
                                   "1.5GiB",
                                   "1KiB",
                                   "-1GiB",
                                   "8.9",
                                   "9.0",
                                   "2.6",
                                   "2.99",
                                   "1.0",
                                   "\x1b[31m",
                                   "%s%n",
                                   "two words",
                                   "rtx-4090",
                                   "custom:12GiB,cc=8.9,sms=46",
                                   "all",
                                   "5 * 8",
                                   "1_0",
                                   "recorded",
                                   "expandable_segments:True",
                                   "max_split_size_mb:18446744073709551615",
                                   "roundup_power2_divisions:[256:1,>:8]",
                                   "garbage_collection_threshold:nan",
                                   "float16",
                                   "manual",
                                   "adamw_foreach",
                                   "block",
                                   "llama-3-8b",
                                   "gpt2-xl"};

// What a command is given in front of its flags, and those.
struct Line {
  std::string words;
  std::vector<std::string> flags;  // "--top=N" if it has a value
};

// Returns a value for a flag whose help calls it `meant`: mostly one that it may have.
std::string ValueFor(const std::string& meant, std::mt19937_64& random) {
  const std::map<std::string, std::vector<std::string>> apt = {
      {"N", {"0", "1", "2", "7", "64"}},
      {"X", {"0.1", "0.5", "1"}},
      {"SIZE", {"1.5GiB", "100MiB", "1KiB", "256TiB"}},
      {"SIZE|NAME", {"1.5GiB", "30MiB", "t4", "unlimited"}},
      {"CONF", {"", "expandable_segments:True", "max_split_size_mb:20", "a:b"}},
      {"VERSION", {"2.1", "2.6", "2.15"}}};
  std::vector<std::string> values(std::begin(kValues), std::end(kValues));
  if (random() % 4 != 0) {
    if (const auto known = apt.find(meant); known != apt.end()) {
      values = known->second;
    } else if (meant.find('|') != std::string::npos) {
      values = absl::StrSplit(meant, '|');
    }
  }
  return values[random() % values.size()];
}

class CommandLinesTest : public Program {
 protected:
  // Returns what a help text lists: commands (nothing in front of them), or flags and keys ("--"),
  // those that have a value with what it is: "--top=N".
  std::vector<std::string> Listed(const std::string& command, const std::string& before) {
    const Outcome help = Run(command + " --help");
    EXPECT_EQ(help.status, 0) << command;
    std::vector<std::string> found;
    std::istringstream lines(help.out);
    for (std::string line; std::getline(lines, line);) {
      const size_t at = line.find(", --") == 4 ? 6 : 2;  // "  -o, --out FILE"
      const size_t name = at + before.size();
      if (!line.starts_with("  ") || line.compare(at, before.size(), before) != 0) continue;
      if (name >= line.size() || std::islower(static_cast<unsigned char>(line[name])) == 0)
        continue;
      const size_t end = std::min(line.find_first_of(" =", at), line.size());
      const bool has_value = end + 1 < line.size() && line[end + 1] != ' ';
      const size_t after = std::min(line.find(' ', end + 1), line.size());
      found.push_back(line.substr(at, end - at) +
                      (has_value ? "=" + line.substr(end + 1, after - end - 1) : ""));
    }
    return found;
  }

  std::vector<Line> Lines() {
    const std::map<std::string, std::string> arguments = {
        {"diff", "in in"},
        {"convert", "in out.jsonl"},
        {"explain", "'CUDA out of memory. Tried to allocate 2.00 GiB'"},
        {"lint", "max_split_size_mb:20"},
        {"synth", "./in"},
        {"completion", "bash"},
        {"record", ""}};
    std::vector<Line> lines;
    for (std::string form : Listed("--all", "")) {
      std::replace(form.begin(), form.end(), '=', ' ');  // "synth schedule" is a form of synth
      const std::string command = form.substr(0, form.find(' '));
      if (command == "fleet" || command == "mcp") continue;  // these are Python
      if (form.ends_with(" script")) continue;               // these start Python
      const auto given = arguments.find(command);
      lines.push_back(
          {command + " " + (given == arguments.end() ? "in" : given->second), Listed(form, "--")});
    }
    for (const std::string model : {"nanogpt", "llama"}) {
      for (const std::string command : {"synth", "replay", "oom", "sweep", "fit"}) {
        Line& line = lines.emplace_back();
        line.words = command + " " + model + " --gradient_accumulation_steps=1";
        if (command == "synth") line.words += " --summary";
        line.flags = Listed("synth " + model, "--");
        const std::vector<std::string> own = Listed(command, "--");
        line.flags.insert(line.flags.end(), own.begin(), own.end());
      }
    }
    std::erase_if(lines, [](const Line& line) { return line.flags.empty(); });
    return lines;
  }
};

TEST_F(CommandLinesTest, EndWithAnAnswerOrALine) {
  const auto number = [](const char* name, uint64_t usual) {
    const char* const text = std::getenv(name);
    return text == nullptr ? usual : std::strtoull(text, nullptr, 10);
  };
  Write("in", kSmallProgram);
  const std::vector<Line> lines = Lines();
  EXPECT_GT(lines.size(), 20u);
  std::mt19937_64 random(number("MEMREPLAY_SEED", 28));
  const uint64_t rounds = number("MEMREPLAY_ATTACKS", 12);
  std::map<int, uint64_t> statuses;
  for (uint64_t round = 0; round < rounds; ++round) {
    for (const Line& line : lines) {
      std::string arguments = line.words;
      for (uint64_t flags = 1 + random() % 3; flags > 0; --flags) {
        const std::string& flag = line.flags[random() % line.flags.size()];
        const size_t value = std::min(flag.find('='), flag.size() - 1) + 1;
        if (flag == "--help") continue;
        arguments += " '" + flag.substr(0, value) +
                     (value < flag.size() ? ValueFor(flag.substr(value), random) : "") + "'";
      }
      const Outcome outcome = Run(arguments, "ulimit -v 2000000; ulimit -t 20;");
      ExpectDecent(outcome, arguments);
      EXPECT_LT(outcome.seconds, 10) << arguments;
      ++statuses[outcome.status];
    }
  }
  // Few lines would be tried if most were refused for the same reason.
  EXPECT_GT(statuses[0] + statuses[1], rounds * lines.size() / 8);
  EXPECT_GT(statuses[2], rounds * lines.size() / 8);
  std::printf(
      "answers: %llu, faults: %llu, refusals: %llu\n", static_cast<unsigned long long>(statuses[0]),
      static_cast<unsigned long long>(statuses[1]), static_cast<unsigned long long>(statuses[2]));
}

}  // namespace
}  // namespace memreplay

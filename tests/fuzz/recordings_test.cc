// Runs whole commands on recordings whose fields were changed: each ends with 0, 1 or 2, within 2
// GB of address space and 10 seconds of the processor. The seed is fixed; a longer run is
//
//   MEMREPLAY_ATTACKS=5000 MEMREPLAY_SEED=7 MEMREPLAY_FOUND=FOLDER
//   bazel-bin/tests/fuzz/recordings_test
//
// FOLDER gets the files of what failed, named by what was run.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>

#include "tests/fuzz/choices.h"
#include "tests/fuzz/mutated_recording.h"
#include "tests/fuzz/mutated_text.h"
#include "tests/program.h"

namespace memreplay {
namespace {

std::string RandomBytes(std::mt19937_64& random) {
  std::string bytes(6 + random() % 120, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

class RecordingsTest : public Program {};

TEST_F(RecordingsTest, WholeCommandsOnChangedFields) {
  std::mt19937_64 random(fuzz::NumberFrom("MEMREPLAY_SEED", 21));
  const uint64_t attacks = fuzz::NumberFrom("MEMREPLAY_ATTACKS", 400);
  const char* const found = std::getenv("MEMREPLAY_FOUND");
  std::map<int, uint64_t> statuses;
  double slowest = 0;
  for (uint64_t attack = 0; attack < attacks; ++attack) {
    const std::string bytes = RandomBytes(random);
    const fuzz::MutatedRecording made =
        attack % 4 == 3 ? fuzz::MutateText(bytes) : fuzz::MutateRecording(bytes);
    if (made.file.empty()) {
      ++statuses[-1];
      continue;
    }
    std::string arguments;
    for (const std::string& word : made.arguments) {
      arguments += word == "FILE" || word == "OTHER" ? " " + word : " '" + word + "'";
    }
    Write("FILE", made.file);
    Write("OTHER", made.other);
    const Outcome outcome = Run(arguments, "ulimit -v 2000000; ulimit -t 20;");
    EXPECT_LE(outcome.status, 2) << attack << arguments << "\n" << outcome.err;
    if (outcome.status == 2) {  // a line, or one for each of two files
      EXPECT_TRUE(outcome.err.starts_with("memreplay: ")) << outcome.err;
      EXPECT_LE(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 3) << outcome.err;
      EXPECT_EQ(outcome.err.find("was ended by signal"), std::string::npos) << outcome.err;
    }
    EXPECT_LT(outcome.seconds, 10) << attack << arguments;
    ++statuses[outcome.status];
    if (outcome.seconds > slowest) {
      slowest = outcome.seconds;
      std::printf("%llu:%s: %.2f s of a file of %zu bytes\n",
                  static_cast<unsigned long long>(attack), arguments.c_str(), slowest,
                  made.file.size());
    }
    if (found != nullptr && (outcome.status < 0 || outcome.status > 2 || outcome.seconds > 5)) {
      std::string name = std::to_string(outcome.status) + "_" + std::to_string(attack) + arguments;
      std::replace(name.begin(), name.end(), '/', '_');
      std::filesystem::copy_file(Path("FILE"), std::filesystem::path(found) / name,
                                 std::filesystem::copy_options::overwrite_existing);
    }
  }
  for (const auto& [status, count] : statuses) {
    std::printf("%s %d: %llu\n", status < 0 ? "refused by the writer" : "exit status", status,
                static_cast<unsigned long long>(count));
  }
  EXPECT_LT(statuses[-1], attacks / 4);
}

}  // namespace
}  // namespace memreplay

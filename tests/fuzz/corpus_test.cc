// Puts every file that the fuzzer kept or that once crashed through its target, and through the
// others; and puts snapshots with field values that nothing writes through every reader and
// command. The seed is fixed, so the inputs are the same on every run; others:
//   MEMREPLAY_SEED=7 bazel-bin/tests/fuzz/corpus_test --gtest_filter='Mutations.*'
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/choices.h"
#include "tests/fuzz/mutated_value.h"
#include "tests/fuzz/targets.h"
#include "tests/trace/support/py_value.h"
#include "tests/trace/support/sample_snapshot.h"

namespace memreplay::fuzz {
namespace {

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

uint64_t Seed() { return NumberFrom("MEMREPLAY_SEED", 15); }

TEST(Corpus, EveryFileThroughItsTarget) {
  size_t files = 0;
  std::vector<Target> targets;
  for (const auto& some : {ReaderTargets(), AllocatorTargets(), CommandTargets()}) {
    targets.insert(targets.end(), some.begin(), some.end());
  }
  for (const Target& target : targets) {
    const auto folder = std::filesystem::path("tests/fuzz/corpus") / std::string(target.name);
    ASSERT_TRUE(std::filesystem::is_directory(folder)) << folder;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      SCOPED_TRACE(entry.path().string());
      target.run(ReadFile(entry.path()));
      ++files;
    }
  }
  EXPECT_GT(files, 20u);
}

TEST(Mutations, SnapshotsWithFieldsThatNoProgramWrites) {
  const Target& commands = *FindTarget(CommandTargets(), "commands");
  const Target& pickle = *FindTarget(ReaderTargets(), "pickle");
  const Target& json = *FindTarget(ReaderTargets(), "snapshot_json");
  std::mt19937_64 random(Seed());
  const auto below = [&random](uint64_t n) { return random() % n; };
  constexpr int kCount = 1500;
  for (int i = 0; i < kCount; ++i) {
    SCOPED_TRACE(i);
    const Release release = kReleases[below(std::size(kReleases))];
    const Py snapshot = MutateValue(SampleSnapshot(release), below);
    const std::string bytes = below(2) == 0 ? PythonPickle(snapshot) : CppPickle(snapshot);
    pickle.run(bytes);
    const std::string text = Json(snapshot);
    json.run(text);
    const std::string& file = below(4) == 0 ? text : bytes;
    commands.run(std::string(1, static_cast<char>(i % 15)) + file);
  }
}

TEST(Mutations, BytesOfSnapshots) {
  const Target& commands = *FindTarget(CommandTargets(), "commands");
  std::mt19937_64 random(Seed());
  for (int i = 0; i < 1500; ++i) {
    SCOPED_TRACE(i);
    std::string bytes = PythonPickle(SampleSnapshot(kReleases[random() % std::size(kReleases)]));
    for (uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
      const size_t at = random() % bytes.size();
      switch (random() % 4) {
        case 0: bytes[at] = static_cast<char>(random()); break;
        case 1: bytes.erase(at, 1 + random() % 8); break;
        case 2: bytes.insert(at, bytes.substr(random() % bytes.size(), 1 + random() % 40)); break;
        default: bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
      }
    }
    commands.run(std::string(1, static_cast<char>(i % 15)) + bytes);
  }
}

}  // namespace
}  // namespace memreplay::fuzz

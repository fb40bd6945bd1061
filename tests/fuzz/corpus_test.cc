// Puts every file that the fuzzer kept or that once crashed through its target, and through the
// others; and puts snapshots with field values that nothing writes through every reader and
// command. The seed is fixed, so the inputs are the same on every run.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/targets.h"
#include "tests/trace/support/py_value.h"
#include "tests/trace/support/sample_snapshot.h"

namespace memreplay::fuzz {
namespace {

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

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

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  Py Mutated(Py snapshot) {
    for (uint64_t i = 1 + Below(4); i > 0; --i) {
      std::vector<Py*> places;
      Collect(snapshot, &places);
      Change(*places[Below(places.size())], places);
    }
    return snapshot;
  }
  uint64_t Below(uint64_t n) { return random_() % n; }

 private:
  void Collect(Py& value, std::vector<Py*>* places) {
    places->push_back(&value);
    for (Py& item : value.items) Collect(item, places);
  }

  // Sizes, addresses and streams at the edges of what 64 bits hold.
  Py Edge() {
    constexpr uint64_t kEdges[] = {0,
                                   1,
                                   511,
                                   512,
                                   513,
                                   (1u << 20) + 1,
                                   (2u << 20) - 1,
                                   20u << 20,
                                   uint64_t{1} << 31,
                                   uint64_t{1} << 32,
                                   uint64_t{1} << 40,
                                   uint64_t{1} << 55,
                                   uint64_t{1} << 60,
                                   ~uint64_t{0} >> 1,
                                   uint64_t{1} << 63,
                                   ~uint64_t{0} - 511,
                                   ~uint64_t{0},
                                   kSampleAddress,
                                   kSampleAddress + 512};
    return Py(kEdges[Below(std::size(kEdges))]);
  }

  void Change(Py& value, const std::vector<Py*>& places) {
    switch (Below(10)) {
      case 0: value = Edge(); return;
      case 1: value = Py(-static_cast<int64_t>(Below(1u << 30))); return;
      case 2: value = Py(0.5); return;
      case 3: value = Below(2) == 0 ? Py(true) : Py(); return;
      case 4: value = Py::List({}); return;
      case 5: value = Py("nonsense \x1b[31m\xc2\x9b"); return;
      case 6: {  // another value of the file: wrong types, shared and nested content
        Py copy = *places[Below(places.size())];
        if (copy.items.size() < 64) value = std::move(copy);
        return;
      }
      case 7:  // a key, an entry, a block or a segment is missing
        if (value.items.size() >= 2) {
          const bool is_dict = value.kind == Py::kDict;
          const size_t at = Below(value.items.size() / 2) * 2;
          value.items.erase(value.items.begin() + static_cast<ptrdiff_t>(at),
                            value.items.begin() + static_cast<ptrdiff_t>(at + (is_dict ? 2 : 1)));
        }
        return;
      case 8:  // the same twice: overlaps, entries that free twice
        if (value.kind == Py::kList && !value.items.empty() && value.items.size() < 64) {
          value.items.push_back(value.items[Below(value.items.size())]);
        }
        return;
      default:
        if (value.kind == Py::kList) {
          std::shuffle(value.items.begin(), value.items.end(), random_);
        } else if (value.kind == Py::kInt || value.kind == Py::kUnsigned) {
          value.integer ^= static_cast<int64_t>(uint64_t{1} << Below(64));
        }
    }
  }

  std::mt19937_64 random_;
};

TEST(Mutations, SnapshotsWithFieldsThatNoProgramWrites) {
  const Target& commands = *FindTarget(CommandTargets(), "commands");
  const Target& pickle = *FindTarget(ReaderTargets(), "pickle");
  const Target& json = *FindTarget(ReaderTargets(), "snapshot_json");
  Mutator mutator(15);
  constexpr int kCount = 1500;
  for (int i = 0; i < kCount; ++i) {
    SCOPED_TRACE(i);
    const Release release = kReleases[mutator.Below(std::size(kReleases))];
    const Py snapshot = mutator.Mutated(SampleSnapshot(release));
    const std::string bytes = mutator.Below(2) == 0 ? PythonPickle(snapshot) : CppPickle(snapshot);
    pickle.run(bytes);
    const std::string text = Json(snapshot);
    json.run(text);
    const std::string& file = mutator.Below(4) == 0 ? text : bytes;
    commands.run(std::string(1, static_cast<char>(i % 15)) + file);
  }
}

TEST(Mutations, BytesOfSnapshots) {
  const Target& commands = *FindTarget(CommandTargets(), "commands");
  std::mt19937_64 random(15);
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

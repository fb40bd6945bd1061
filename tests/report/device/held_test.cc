#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "report/device/categories.h"
#include "trace/formats/open_trace.h"

namespace memreplay {
namespace {

constexpr size_t kTop = 15;

std::vector<std::string> Pickles(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".pickle") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// What the lists of files show to their readers.
struct Count {
  int devices = 0;
  int devices_with_equal_labels = 0;
  int stacks = 0;
  int without_python = 0;  // in the label
  int python_hidden = 0;   // of those, where the stack has a Python frame
};

Count CountTopStacks(const std::vector<std::string>& files) {
  Count count;
  for (const std::string& file : files) {
    auto opened = OpenTrace(file);
    EXPECT_TRUE(opened.ok()) << file << opened.status();
    if (!opened.ok()) continue;
    const auto trace = std::make_shared<const Trace>(*std::move(opened));
    StackNames names(*trace);
    for (size_t device = 0; device < trace->devices.size(); ++device) {
      const proto::Held held =
          HeldAtPeak(Schedule::Build(trace, device), names, {.top = kTop, .filter = ""});
      if (held.stacks().empty()) continue;
      ++count.devices;
      std::set<std::string> labels;
      for (const proto::HeldBytes& row : held.stacks()) {
        const std::string& label = row.stack().summary();
        ++count.stacks;
        if (!labels.insert(label).second) ADD_FAILURE() << file << ": twice " << label;
        const auto has_python = [](const std::string& text) {
          return text.find(".py:") != text.npos;
        };
        const bool is_shown = has_python(label) || label.find("compiled ") != label.npos;
        if (is_shown) continue;
        ++count.without_python;
        const auto& frames = row.stack().frames();
        if (std::any_of(frames.begin(), frames.end(), has_python)) {
          ++count.python_hidden;
          ADD_FAILURE() << file << ": no Python in " << label;
        }
      }
      if (labels.size() < static_cast<size_t>(held.stacks_size()))
        ++count.devices_with_equal_labels;
    }
  }
  std::cout << count.stacks << " top stacks of " << count.devices
            << " devices: " << count.without_python << " show no Python frame, "
            << count.python_hidden << " of them have one; " << count.devices_with_equal_labels
            << " devices show equal labels\n";
  return count;
}

TEST(Held, TopStacksOfTheProjectsSnapshotsCanBeToldApart) {
  const Count count = CountTopStacks(Pickles("tests/data/snapshots"));
  EXPECT_GT(count.stacks, 50);
  EXPECT_EQ(count.python_hidden, 0);
  EXPECT_EQ(count.devices_with_equal_labels, 0);
}

TEST(Held, TopStacksOfRealSnapshotsCanBeToldApart) {
  const char* shared = std::getenv("MEMREPLAY_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "MEMREPLAY_SHARED is not set: no real snapshots here";
  const Count count = CountTopStacks(Pickles(std::string(shared) + "/data/snapshots"));
  EXPECT_GT(count.stacks, 200);
  EXPECT_EQ(count.python_hidden, 0);
  EXPECT_EQ(count.devices_with_equal_labels, 0);
}

// Without events the blocks of the state at the end show who holds them.
TEST(Held, WithoutATraceTheBlocksTell) {
  auto opened = OpenTrace("tests/data/snapshots/torch-2.15/state_only.pickle");
  ASSERT_TRUE(opened.ok()) << opened.status();
  StackNames names(*opened);
  const proto::Held held = HeldAtEnd(*opened, 0, names, {});
  ASSERT_GT(held.stacks_size(), 1);
  EXPECT_NE(held.stacks(0).stack().summary().find(".py:"), std::string::npos);
  int64_t bytes = 0;
  for (const SegmentInfo& segment : opened->devices[0].final_state) {
    for (const BlockInfo& block : segment.blocks) {
      if (block.state != BlockState::kInactive) bytes += block.size.signed_value();
    }
  }
  EXPECT_EQ(held.bytes(), bytes);
  int64_t listed = 0;
  for (const proto::HeldBytes& row : held.stacks()) listed += row.bytes();
  EXPECT_LE(listed, bytes);
  // A filter keeps only some.
  const proto::Held none = HeldAtEnd(*opened, 0, names, {.top = 3, .filter = "no such file"});
  EXPECT_EQ(none.bytes(), 0);
  const proto::Held some = HeldAtEnd(*opened, 0, names, {.top = 1, .filter = ".PY"});
  EXPECT_EQ(some.stacks_size(), 1);
  EXPECT_GT(some.bytes(), some.stacks(0).bytes());
  EXPECT_GT(some.left_out_stacks(), 0);
}

}  // namespace
}  // namespace memreplay

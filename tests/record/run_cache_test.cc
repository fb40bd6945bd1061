#include "record/run_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace memreplay {
namespace {

namespace fs = std::filesystem;

class RunCacheTest : public testing::Test {
 protected:
  RunCacheTest() : folder_(fs::path(testing::TempDir()) / "run_cache_test") {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }

  // Returns a report of a script of one source file, as it is now.
  proto::RecordReport ReportOf(const fs::path& source) {
    std::ofstream(source) << "print(1)";
    struct stat found;
    EXPECT_EQ(stat(source.c_str(), &found), 0);
    proto::RecordReport report;
    report.set_seconds(2.5);
    proto::Source& row = *report.add_processes()->add_sources();
    row.set_path(source.string());
    row.set_size(found.st_size);
    row.set_modified(static_cast<uint64_t>(found.st_mtim.tv_sec) * 1'000'000'000 +
                     static_cast<uint64_t>(found.st_mtim.tv_nsec));
    return report;
  }

  const fs::path folder_;
};

TEST_F(RunCacheTest, FindsWhatWasKept) {
  const RunCache cache(folder_ / "runs");
  EXPECT_FALSE(cache.Find("key").has_value());
  cache.Keep("key", ReportOf(folder_ / "train.py"));
  ASSERT_TRUE(cache.Find("key").has_value());
  EXPECT_EQ(cache.Find("key")->seconds(), 2.5);
  EXPECT_FALSE(cache.Find("another").has_value());
  // Nothing half written is left behind.
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "runs"), fs::directory_iterator()), 1);
}

TEST_F(RunCacheTest, AChangedProgramIsAnother) {
  const RunCache cache(folder_ / "runs");
  cache.Keep("key", ReportOf(folder_ / "train.py"));
  std::ofstream(folder_ / "train.py") << "print(1, 2)";
  EXPECT_FALSE(cache.Find("key").has_value());
}

TEST_F(RunCacheTest, ADamagedFileIsNone) {
  const RunCache cache(folder_ / "runs");
  cache.Keep("key", ReportOf(folder_ / "train.py"));
  for (const auto& entry : fs::directory_iterator(folder_ / "runs")) {
    std::ofstream(entry.path()) << "not a run";
  }
  EXPECT_FALSE(cache.Find("key").has_value());
}

TEST_F(RunCacheTest, ACacheThatCannotBeWrittenIsNone) {
  std::ofstream(folder_ / "file") << "";
  const RunCache cache(folder_ / "file");
  cache.Keep("key", proto::RecordReport());
  EXPECT_FALSE(cache.Find("key").has_value());
}

TEST(RunCacheKey, TellsRunsApart) {
  RecordOptions options;
  options.program = {"train.py", "--batch=1"};
  options.card = "rtx-4090";
  const std::string key = RunCacheKey(options);
  EXPECT_EQ(RunCacheKey(options), key);
  RecordOptions other = options;
  other.program.back() = "--batch=2";
  EXPECT_NE(RunCacheKey(other), key);
  other = options;
  other.card = "a100-80gb";
  EXPECT_NE(RunCacheKey(other), key);
  other = options;
  other.environment["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True";
  EXPECT_NE(RunCacheKey(other), key);
}

}  // namespace
}  // namespace memreplay

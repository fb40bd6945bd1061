// Checks that a large snapshot, honest and complete, stays within a bound on memory: half its size
// for inspect and replay, its size for report, and 64 MiB. The mapped file does not count.
#include <cstdio>
#include <cstdlib>

#include "tests/program.h"

namespace memreplay {
namespace {

class LargeTest : public Program {};

// MEMREPLAY_LARGE_GB says how large it is; without it, it has a tenth of a gigabyte.
TEST_F(LargeTest, WithinHalfOfItsSize) {
  const char* const wanted = std::getenv("MEMREPLAY_LARGE_GB");
  const std::string gigabytes = wanted == nullptr ? "0.1" : wanted;
  const std::string make = "python3 tests/hard/make_large.py " + gigabytes + " " + Path("large");
  ASSERT_EQ(std::system(make.c_str()), 0);
  const uint64_t size = std::filesystem::file_size(folder_ / "large");
  for (const std::string command : {"inspect --deep", "replay", "report -o page.html"}) {
    const uint64_t limit = (command.starts_with("report") ? size : size / 2) + (64 << 20);
    const Outcome outcome = Run(command + " large --memory-limit " + std::to_string(limit));
    EXPECT_EQ(outcome.status, 0) << command << ": " << outcome.err;
    if (command == "replay") {
      EXPECT_NE(outcome.out.find("the replay agrees with the recording"), std::string::npos);
    }
    std::printf("%-20s %6.2f GB of file, at most %6.2f GB of memory, %6.1f s\n", command.c_str(),
                static_cast<double>(size) / 1e9, static_cast<double>(limit) / 1e9, outcome.seconds);
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace memreplay

#include "sim/run/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

namespace memreplay {
namespace {

TEST(ParallelFor, CallsEachOnceOnAnyNumberOfThreads) {
  for (const size_t threads : {size_t{1}, size_t{2}, size_t{5}, size_t{100}}) {
    std::vector<std::atomic<int>> calls(17);
    ParallelFor(calls.size(), threads, [&](size_t i) { ++calls[i]; });
    for (const std::atomic<int>& each : calls) EXPECT_EQ(each, 1) << threads;
  }
  ParallelFor(0, 4, [](size_t) { ADD_FAILURE(); });
}

TEST(ParallelFor, OneThreadIsTheCaller) {
  std::set<std::thread::id> seen;
  ParallelFor(9, 1, [&](size_t) { seen.insert(std::this_thread::get_id()); });
  EXPECT_EQ(seen, std::set{std::this_thread::get_id()});
}

}  // namespace
}  // namespace memreplay

// Independent tasks on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <future>
#include <vector>

#include "trace/value/launch.h"

namespace memreplay {

// Calls work(i) once for each i below `count`, on at most `threads` threads including the calling
// one, and returns when all are done. The assignment to threads is undefined, so each call of
// `work` must write its result to a place of its own.
template <typename Work>
void ParallelFor(size_t count, size_t threads, const Work& work) {
  std::atomic<size_t> next{0};
  const auto take = [&] {
    for (size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) work(i);
  };
  std::vector<std::future<void>> helpers;
  for (size_t i = 1; i < std::min(threads, count); ++i) {
    helpers.push_back(LaunchOn(threads, take));
  }
  take();
  for (const std::future<void>& helper : helpers) helper.wait();
}

}  // namespace memreplay

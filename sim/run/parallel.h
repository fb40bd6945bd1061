// Independent tasks on several threads.
#ifndef MEMREPLAY_SIM_RUN_PARALLEL_H_
#define MEMREPLAY_SIM_RUN_PARALLEL_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

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
  std::vector<std::thread> helpers;
  for (size_t i = 1; i < std::min(threads, count); ++i) helpers.emplace_back(take);
  take();
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_RUN_PARALLEL_H_

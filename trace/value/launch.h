// A task on a thread of its own.
#pragma once

#include <cstddef>
#include <future>

namespace memreplay {

// Runs `work` on a thread of its own if there are several, but when its result is waited for if the
// system starts none (a limit on memory or on threads). `work` is copied: std::async() has moved
// it away by the time it sees that there is no thread.
template <typename Work>
auto LaunchOn(size_t threads, const Work& work) {
  return std::async(
      threads > 1 ? std::launch::async | std::launch::deferred : std::launch::deferred, work);
}

}  // namespace memreplay

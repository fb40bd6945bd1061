// MEMREPLAY_CHECK(condition, message) stops the process if an invariant is broken and prints where
// and why. It is for mistakes of memreplay, never for bad input.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace memreplay::internal {

[[noreturn]] inline void CheckFailed(const char* file, int line, const char* condition,
                                     std::string_view message) {
  std::fprintf(stderr, "%s:%d: broken invariant: %.*s (%s)\n", file, line,
               static_cast<int>(message.size()), message.data(), condition);
  std::abort();
}

}  // namespace memreplay::internal

// `message` is anything that converts to string_view; it is evaluated only on failure.
#define MEMREPLAY_CHECK(condition, message)                                          \
  do {                                                                               \
    if (!(condition)) [[unlikely]] {                                                 \
      ::memreplay::internal::CheckFailed(__FILE__, __LINE__, #condition, (message)); \
    }                                                                                \
  } while (false)

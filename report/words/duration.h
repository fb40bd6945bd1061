// Formats times.
#ifndef MEMREPLAY_REPORT_WORDS_DURATION_H_
#define MEMREPLAY_REPORT_WORDS_DURATION_H_

#include <cstdint>
#include <string>

namespace memreplay {

// Returns "812 ns", "1.5 us", "12.25 ms" or "3.00 s". `nanoseconds` is not negative.
std::string FormatDuration(int64_t nanoseconds);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_WORDS_DURATION_H_

// Times as people read them.
#ifndef MEMREPLAY_REPORT_WORDS_DURATION_H_
#define MEMREPLAY_REPORT_WORDS_DURATION_H_

#include <cstdint>
#include <string>

namespace memreplay {

// "812 ns", "1.5 us", "12.25 ms", "3.00 s". Not negative.
std::string FormatDuration(int64_t nanoseconds);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_WORDS_DURATION_H_

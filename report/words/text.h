// Text from files, made fit for a report.
#ifndef MEMREPLAY_REPORT_WORDS_TEXT_H_
#define MEMREPLAY_REPORT_WORDS_TEXT_H_

#include <string>
#include <string_view>

namespace memreplay {

// Valid UTF-8 without control characters, as protobuf's strings and terminals
// want it: each other byte becomes '?'.
std::string CleanText(std::string_view text);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_WORDS_TEXT_H_

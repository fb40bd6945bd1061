// Words that the text format's reader and writer share.
#ifndef MEMREPLAY_TRACE_FORMATS_TEXT_TEXT_NAMES_H_
#define MEMREPLAY_TRACE_FORMATS_TEXT_TEXT_NAMES_H_

#include <string_view>

namespace memreplay {

inline constexpr std::string_view kMarkKindNames[] = {"phase", "label", "retag", "event_record",
                                                      "stream_wait"};  // by MarkKind

// Whether a value can stand without quotes.
inline bool IsBareWord(std::string_view text) {
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("_.:,/+-#").find(c) != std::string_view::npos;
    if (!plain) return false;
  }
  return !text.empty();
}

}  // namespace memreplay

#endif  // MEMREPLAY_TRACE_FORMATS_TEXT_TEXT_NAMES_H_

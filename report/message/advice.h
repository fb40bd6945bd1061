// What to do next, of a verdict and the text it is about.
#ifndef MEMREPLAY_REPORT_MESSAGE_ADVICE_H_
#define MEMREPLAY_REPORT_MESSAGE_ADVICE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "report/message/facts.h"
#include "report/message/judge.h"

namespace memreplay {

// One thing to do about an error.
struct Advice {
  std::string kind;      // docs/oom.md lists them
  std::string brief;     // "end process 4711": an imperative for the first line
  std::string sentence;  // the same in full
};

inline constexpr size_t kMaxAdvice = 4;

// At most kMaxAdvice, in the order in which to try them; never empty, and nothing that the text
// rules out.
std::vector<Advice> Advise(const Facts& facts, const Sums& sums, const Judgement& judgement);

// What the traceback says outright, a sentence each.
std::vector<std::string> FrameSentences(const Facts& facts);

// The name for --card of the GPU that the text is about, by its name or its memory; "" if that is
// unknown.
std::string CardFlag(const Facts& facts);
// Those that memory alone can lead to.
absl::Span<const std::string_view> CardFlags();

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_MESSAGE_ADVICE_H_

// Advises what to do next, from a verdict and the text it is about.
#pragma once

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

// A text of rows/tips.tsv; the sentence may have a place, $0, for what is known of the failure.
struct Tip {
  std::string_view kind;
  std::string_view brief;
  std::string_view sentence;
};

inline constexpr size_t kMaxAdvice = 4;

// Returns at most kMaxAdvice pieces of advice, in the order in which to try them. Never empty, and
// never contains what the text rules out.
std::vector<Advice> Advise(const Facts& facts, const Sums& sums, const Judgement& judgement);

// Returns what the traceback shows directly, one sentence each.
std::vector<std::string> FrameSentences(const Facts& facts);

// Returns the name for --card of the GPU that the text is about, by its name or its memory; "" if
// that is unknown.
std::string CardFlag(const Facts& facts);
// Returns those names that the memory size alone can lead to.
absl::Span<const std::string_view> CardFlags();

}  // namespace memreplay

// Where the memory of a card is, in words.
#ifndef MEMREPLAY_REPORT_WORDS_MEMORY_USE_H_
#define MEMREPLAY_REPORT_WORDS_MEMORY_USE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proto/report.pb.h"

namespace memreplay {

struct MemoryPart {
  int64_t bytes = 0;
  std::string what;
};

// The parts that are not 0, and what they add up to, where that is known.
std::vector<MemoryPart> PartsOf(const proto::MemoryUse& use);

// "survives", "served here", "runs out": what a change comes to.
std::string_view ResultOf(bool survives, bool served);

// "TRUE SHORTAGE" of true_shortage.
std::string VerdictName(proto::Verdict verdict);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_WORDS_MEMORY_USE_H_

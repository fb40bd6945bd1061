// Why memory ran out -> Report.
#ifndef MEMREPLAY_REPORT_ANSWER_OOM_REPORT_H_
#define MEMREPLAY_REPORT_ANSWER_OOM_REPORT_H_

#include <optional>
#include <string>

#include "proto/report.pb.h"
#include "report/answer/held.h"
#include "sim/oom/oom_analysis.h"
#include "sim/recording/replay_settings.h"
#include "trace/schedule/schedule.h"
#include "trace/value/memory_state.h"

namespace memreplay {

struct OomReportOptions {
  // Memory of the card, where the recording was made; absent: estimated.
  std::optional<Bytes> card;
  HeldOptions held;  // its `top` also for segments
};

// `analysis` null: memory does not run out.
proto::OutOfMemory OomReport(const Schedule& schedule, const ReplaySettings& settings,
                             const OomAnalysis* analysis, const OomReportOptions& options);

// The parts of the state that memory use is made of; capacity and what is
// outside PyTorch stay 0. O(blocks).
proto::MemoryUse MemoryUseOf(const MemoryState& state);

// The smallest usual card that holds `bytes`, as its driver reports its
// total; nullopt if none does. The name is for people.
struct Card {
  std::string_view name;
  Bytes total;
};
std::optional<Card> SmallestCard(Bytes bytes);

// The exit status wants to know: did it run out?
inline bool RanOut(const proto::OutOfMemory& oom) { return oom.verdict() != proto::Verdict::none; }

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_ANSWER_OOM_REPORT_H_

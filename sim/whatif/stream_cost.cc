#include "sim/whatif/stream_cost.h"

#include <algorithm>
#include <utility>

#include "sim/study/what_if.h"
#include "sim/whatif/one_stream.h"
#include "trace/value/status_macros.h"

namespace memreplay {
namespace {

// An intervention that makes the requests of stream `from` on stream `into`.
class MergeStream final : public Intervention {
 public:
  MergeStream(const Schedule& schedule, uint32_t from, uint32_t into)
      : schedule_(schedule), from_(from), into_(into) {}
  Next BeforeRequest(size_t request, Allocator& allocator, Observer& observer) override {
    Event asked = schedule_.requests()[request];
    const bool has_stream = asked.kind == EventKind::kAlloc || asked.kind == EventKind::kFree ||
                            asked.kind == EventKind::kRecordStream ||
                            asked.kind == EventKind::kStreamDone;
    if (!has_stream || asked.stream != from_) return Next::kApply;
    asked.stream = into_;
    allocator.Apply(asked, observer).IgnoreError();
    return Next::kSkip;
  }

 private:
  const Schedule& schedule_;
  const uint32_t from_, into_;
};

}  // namespace

absl::StatusOr<StreamCost> CostOfStreams(const Schedule& schedule, const ReplaySettings& settings) {
  ReplaySettings unlimited = settings;
  unlimited.as_recorded = false;
  unlimited.TakeDevice(std::nullopt);
  const auto peak = [&](Intervention* intervention) -> absl::StatusOr<Bytes> {
    WhatIfOptions options;
    options.run.intervention = intervention;
    ASSIGN_OR_RETURN(const WhatIfResult run, ReplayWhatIf(schedule, unlimited, nullptr, options));
    return run.peak.reserved();
  };
  StreamCost cost;
  ASSIGN_OR_RETURN(cost.peak_reserved, peak(nullptr));
  OneStream one_stream(schedule);
  ASSIGN_OR_RETURN(cost.peak_reserved_one_stream, peak(&one_stream));

  std::vector<std::pair<Bytes, uint32_t>> asked(schedule.stream_count());
  for (uint32_t stream = 0; stream < asked.size(); ++stream) asked[stream].second = stream;
  for (const Event& request : schedule.requests()) {
    if (request.kind == EventKind::kAlloc) asked[request.stream].first += request.size;
  }
  std::stable_sort(asked.begin(), asked.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::erase_if(asked, [](const auto& each) { return each.first == Bytes(); });
  if (asked.empty()) return cost;
  cost.main_stream = asked.front().second;
  for (size_t i = 1; i < asked.size() && i <= kMaxMerged; ++i) {
    MergeStream merge(schedule, asked[i].second, cost.main_stream);
    ASSIGN_OR_RETURN(const Bytes merged, peak(&merge));
    cost.merged.push_back({asked[i].second, merged});
  }
  return cost;
}

}  // namespace memreplay

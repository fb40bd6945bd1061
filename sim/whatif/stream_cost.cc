#include "sim/whatif/stream_cost.h"

#include <algorithm>

#include "sim/study/what_if.h"
#include "trace/value/status_macros.h"

namespace memreplay {
namespace {

bool IsOfMemory(const Event& request) {
  return request.kind == EventKind::kAlloc || request.kind == EventKind::kFree;
}

bool IsOfStreams(const Event& request) {
  return request.kind == EventKind::kRecordStream || request.kind == EventKind::kStreamDone;
}

// Makes the requests of stream `from` on stream `into`.
Rewrite Merged(uint32_t from, uint32_t into) {
  return [=](Event request) -> std::optional<Event> {
    const bool has_stream = IsOfMemory(request) || IsOfStreams(request);
    if (has_stream && request.stream == from) request.stream = into;
    return request;
  };
}

}  // namespace

Rewrite OnOneStream() {
  return [](Event request) -> std::optional<Event> {
    if (IsOfStreams(request)) return std::nullopt;
    if (IsOfMemory(request)) request.stream = 0;
    return request;
  };
}

Rewrite InOnePool() {
  // `first` is the first that was used; 0: none was.
  return [first = uint16_t{0}](Event request) mutable -> std::optional<Event> {
    const uint16_t pool = request.pool;
    if (pool != 0 && first == 0) first = pool;
    if (pool != 0) request.pool = first;
    const bool ends =
        request.kind == EventKind::kPoolRelease || request.kind == EventKind::kPoolForget;
    const bool is_made = request.kind == EventKind::kPoolCreate && request.pool != pool;
    if (ends || is_made) return std::nullopt;  // others still use it
    return request;
  };
}

Intervention::Next Rewriting::BeforeRequest(size_t request, Allocator& allocator,
                                            Observer& observer) {
  if (rewrite_ == nullptr) return Next::kApply;
  const Event given = schedule_.requests()[request];
  const std::optional<Event> made = Rewritten(given);
  if (!made.has_value()) return Next::kSkip;
  if (made->stream == given.stream && made->pool == given.pool) return Next::kApply;
  allocator.Apply(*made, observer).IgnoreError();
  return Next::kSkip;
}

bool AllocatesOnSeveralStreams(const Schedule& schedule) {
  if (schedule.stream_count() < 2) return false;
  std::optional<uint32_t> first;
  for (const Event& request : schedule.requests()) {
    if (request.kind != EventKind::kAlloc) continue;
    if (!first.has_value()) first = request.stream;
    if (request.stream != *first) return true;
  }
  return false;
}

std::vector<std::pair<Bytes, uint32_t>> BusiestStreams(const Schedule& schedule) {
  std::vector<std::pair<Bytes, uint32_t>> asked(schedule.stream_count());
  for (uint32_t stream = 0; stream < asked.size(); ++stream) asked[stream].second = stream;
  for (const Event& request : schedule.requests()) {
    if (request.kind == EventKind::kAlloc) asked[request.stream].first += request.size;
  }
  std::stable_sort(asked.begin(), asked.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::erase_if(asked, [](const auto& each) { return each.first == Bytes(); });
  return asked;
}

absl::StatusOr<StreamCost> CostOfStreams(const Schedule& schedule, const ReplaySettings& settings) {
  ReplaySettings unlimited = settings;
  unlimited.as_recorded = false;
  unlimited.TakeDevice(std::nullopt);
  const auto peak = [&](Rewrite rewrite) -> absl::StatusOr<Bytes> {
    Rewriting rewriting(schedule, std::move(rewrite));
    WhatIfOptions options;
    options.run.intervention = &rewriting;
    ASSIGN_OR_RETURN(const WhatIfResult run, ReplayWhatIf(schedule, unlimited, nullptr, options));
    return run.peak.reserved();
  };
  StreamCost cost;
  ASSIGN_OR_RETURN(cost.peak_reserved, peak(nullptr));
  ASSIGN_OR_RETURN(cost.peak_reserved_one_stream, peak(OnOneStream()));

  const std::vector<std::pair<Bytes, uint32_t>> asked = BusiestStreams(schedule);
  if (asked.empty()) return cost;
  cost.main_stream = asked.front().second;
  for (size_t i = 1; i < asked.size() && i <= kMaxMerged; ++i) {
    ASSIGN_OR_RETURN(const Bytes merged, peak(Merged(asked[i].second, cost.main_stream)));
    cost.merged.push_back({asked[i].second, merged});
  }
  return cost;
}

}  // namespace memreplay

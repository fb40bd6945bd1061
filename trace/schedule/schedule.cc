#include "trace/schedule/schedule.h"

#include <utility>

#include "trace/schedule/schedule_builder.h"

namespace memreplay {
namespace {

// Handles of the streams of late completions: above any address of a process.
constexpr uint64_t kInferredStreamHandles = uint64_t{1} << 63;

}  // namespace

Schedule Schedule::Build(std::shared_ptr<const Trace> trace, size_t device_index,
                         InferredPools inferred) {
  return ScheduleBuilder(std::move(trace), device_index, std::move(inferred)).Build();
}

StreamHandle Schedule::stream_handle(uint32_t stream) const {
  const size_t known = trace_->streams.size();
  if (stream < known) return trace_->streams[stream];
  return StreamHandle(kInferredStreamHandles + (stream - known));
}

uint64_t EventOfRequest(const Schedule& schedule, size_t request) {
  const absl::Span<const uint32_t> begins = schedule.recorded_begin();
  if (request >= begins.size()) return request;
  const EventView recorded = schedule.recorded();
  const size_t end = request + 1 < begins.size() ? begins[request + 1] : recorded.size();
  for (size_t i = begins[request]; i < end; ++i) {
    if (recorded.kind(i) == EventKind::kOom || recorded.kind(i) == EventKind::kAlloc) return i;
  }
  return begins[request];
}

ScheduleBuilder::ScheduleBuilder(std::shared_ptr<const Trace> trace, size_t device_index,
                                 InferredPools inferred)
    : source_(trace->devices[device_index]) {
  schedule_.diagnostics_ = trace->diagnostics;
  schedule_.stream_count_ = static_cast<uint32_t>(trace->streams.size());
  schedule_.trace_ = std::move(trace);
  schedule_.device_index_ = device_index;
  schedule_.inferred_ = std::move(inferred);
  live_.reserve(4096);
}

Schedule ScheduleBuilder::Build() && {
  if (const EventSource* source = source_.events.source()) {
    TakeExpanded(*source);
    return std::move(schedule_);
  }
  schedule_.ids_.resize(source_.events.size(), kNoAllocation);
  if (schedule_.is_program()) {
    BuildProgram();
  } else {
    TellPools();
    Identify();
    ReadFinalState();
    SortStarts();
    NumberLateStreams();
    MeasureReserved();
    CheckAllocsAreInSegments();
    DescribeHead();
    MakeRequests();
  }
  schedule_.request_from_.shrink_to_fit();
  schedule_.allocation_count_ = next_id_;
  return std::move(schedule_);
}

void ScheduleBuilder::AddRequest(const Event& request, uint32_t event) {
  if (event < RequestView::kOwn && RequestView::AsRequest(this->event(event)) == request) {
    schedule_.request_from_.push_back(event);
    return;
  }
  schedule_.request_from_.push_back(RequestView::kOwn |
                                    static_cast<uint32_t>(schedule_.own_requests_.size()));
  schedule_.own_requests_.push_back(request);
}

}  // namespace memreplay

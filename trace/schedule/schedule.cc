#include "trace/schedule/schedule.h"

#include <algorithm>
#include <utility>

#include "trace/schedule/schedule_builder.h"

namespace memreplay {
namespace {

// The handles of the streams of late completions start above any address of a process.
constexpr uint64_t kInferredStreamHandles = uint64_t{1} << 63;

}  // namespace

Schedule Schedule::Build(std::shared_ptr<const Trace> trace, size_t device_index,
                         InferredPools inferred,
                         const std::function<void(Schedule)>& take_recorded) {
  return ScheduleBuilder(std::move(trace), device_index, std::move(inferred)).Build(take_recorded);
}

Schedule Schedule::BuildRecorded(std::shared_ptr<const Trace> trace, size_t device_index,
                                 InferredPools inferred) {
  return ScheduleBuilder(std::move(trace), device_index, std::move(inferred)).BuildRecorded();
}

Schedule Schedule::WithRequests(absl::Span<const uint32_t> from, absl::Span<const Event> own,
                                uint32_t allocation_count) const {
  Schedule other = *this;
  if (device_trace().events.source() != nullptr) return other;  // not supported; see the header
  const auto kept = static_cast<uint32_t>(own_requests_.size());
  other.own_requests_.insert(other.own_requests_.end(), own.begin(), own.end());
  other.request_from_.clear();
  other.request_from_.reserve(from.size());
  for (const uint32_t request : from) {
    const bool is_own = (request & RequestView::kOwn) != 0;
    other.request_from_.push_back(is_own ? request + kept : request_from_[request]);
  }
  if (!recorded_begin_.empty()) {  // one of `own` has no events and precedes the next one's
    other.recorded_begin_.assign(from.size(), static_cast<uint32_t>(recorded().size()));
    for (size_t i = from.size(); i > 0; --i) {
      const bool is_own = (from[i - 1] & RequestView::kOwn) != 0;
      if (!is_own) {
        other.recorded_begin_[i - 1] = recorded_begin_[from[i - 1]];
      } else if (i < from.size()) {
        other.recorded_begin_[i - 1] = other.recorded_begin_[i];
      }
    }
  }
  other.allocation_count_ = std::max(allocation_count_, allocation_count);
  return other;
}

Schedule Schedule::WithSizes(absl::Span<const Bytes> sizes) const {
  Schedule other = *this;
  if (device_trace().events.source() != nullptr) return other;  // not supported; see the header
  const RequestView before = requests();
  for (size_t i = 0; i < before.size(); ++i) {
    Event request = before[i];
    if (request.kind != EventKind::kAlloc || request.id >= sizes.size() ||
        request.size == sizes[request.id]) {
      continue;
    }
    request.size = sizes[request.id];
    other.request_from_[i] = RequestView::kOwn | static_cast<uint32_t>(other.own_requests_.size());
    other.own_requests_.push_back(request);
  }
  for (StartAllocation& start : other.start_allocations_) {
    if (start.id >= sizes.size() || start.requested_size == sizes[start.id]) continue;
    start.requested_size = sizes[start.id];
    start.block_size.reset();
  }
  return other;
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

Schedule ScheduleBuilder::Build(const std::function<void(Schedule)>& take_recorded) && {
  if (const EventSource* source = source_.events.source()) {
    TakeExpanded(*source);
    return std::move(schedule_);
  }
  if (schedule_.is_program()) {
    MakeIds();
    BuildProgram();
    schedule_.allocation_count_ = next_id_;
  } else {
    FindAllocations();
    NumberLateStreams();
    MeasureReserved();
    CheckAllocsAreInSegments();
    DescribeHead();
    if (take_recorded) take_recorded(schedule_);
    MakeRequests();
  }
  schedule_.request_from_.shrink_to_fit();
  return std::move(schedule_);
}

Schedule ScheduleBuilder::BuildRecorded() && {
  if (schedule_.is_program()) return std::move(*this).Build(nullptr);
  FindAllocations();
  MeasureReserved();
  DescribeHead();
  return std::move(schedule_);
}

void ScheduleBuilder::MakeIds() {
  schedule_.ids_ =
      std::make_shared<std::vector<AllocationId>>(source_.events.size(), kNoAllocation);
  ids_ = schedule_.ids_->data();
}

void ScheduleBuilder::FindAllocations() {
  MakeIds();
  ReportPools();
  Identify();
  ReadFinalState();
  SortStarts();
  BoundStarts();
  schedule_.allocation_count_ = next_id_;
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

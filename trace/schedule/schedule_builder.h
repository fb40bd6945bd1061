// Builds a Schedule; used by Schedule::Build and BuildRecorded only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "trace/schedule/recorded_groups.h"
#include "trace/schedule/schedule.h"
#include "trace/schedule/settings_changes.h"

namespace memreplay {

// Builds the Schedule of one device of a trace.
class ScheduleBuilder {
 public:
  ScheduleBuilder(std::shared_ptr<const Trace> trace, size_t device_index, InferredPools inferred);
  Schedule Build(const std::function<void(Schedule)>& take_recorded) &&;
  Schedule BuildRecorded() &&;

 private:
  static constexpr uint32_t kNotRequested = 0xffffffff;
  static constexpr uint32_t kNoEvent = 0xffffffff;

  struct Live {
    AllocationId id = kNoAllocation;
    uint32_t since = 0;                     // index of the alloc event
    uint32_t free_request = kNotRequested;  // index of a free that is not complete yet
  };
  using Range = std::pair<uint64_t, uint64_t>;
  using LiveMap = absl::flat_hash_map<uint64_t, Live>;

  void MakeIds();

  // For programs, whose addresses are handles (schedule_program.cc).
  void BuildProgram();
  // Takes the events of a program that is expanded again; these are valid and have ids, so they are
  // not checked.
  void TakeExpanded(const EventSource& source);

  // For recordings, called in this order (schedule_recorded.cc).
  void FindAllocations();  // up to BoundStarts()
  void ReportPools();
  void ReadSettings();
  void ReadPoolFlags();  // as Python noted them
  void Identify();       // ids, roles, start allocations that the trace frees
  void IdentifyAlloc(uint32_t i);
  uint32_t IdentifyFree(uint32_t i);  // returns the last event handled
  void IdentifyCompletion(uint32_t i);
  bool IsInSegment(const Event& alloc) {  // of segment_ranges_
    const uint64_t begin = alloc.address.value();
    const uint64_t end = begin + alloc.size.value();
    if (begin >= near_.first && end <= near_.second) [[likely]] {
      return true;
    }
    near_ = RangeWith(begin);
    return begin >= near_.first && end <= near_.second;
  }
  AllocationId AddStart(uint32_t i, BlockState state);
  void ReadFinalState();  // ids of its blocks, start allocations never freed
  void SortStarts();
  void BoundStarts();
  void NumberLateStreams();
  void MeasureReserved();  // at the start, and the maximum
  void CheckAllocsAreInSegments();
  // Joins ranges that overlap or touch. Ascending.
  static std::vector<Range> Joined(std::vector<Range> ranges);
  // Returns the last of segment_ranges_ that begins at or below `address`, or kNowhere.
  Range RangeWith(uint64_t address) const;
  void DescribeHead();
  void MakeRequests();
  void EmitGroup(const RecordedGroup& group);
  // Adds a request that is an event of the file, whose index is below RequestView::kOwn.
  void EmitOwn(const RecordedGroup& group) {
    schedule_.request_from_.push_back(group.request);
    schedule_.recorded_begin_.push_back(group.begin);
  }
  void EmitCompletions(const RecordedGroup& group);
  void EmitEmptyCache(const RecordedGroup& group);
  void EmitPoolReleases(const RecordedGroup& group);
  void EmitStreamDone(uint32_t rank, uint32_t recorded_begin);
  // Emits the settings that the script changed up to this event.
  void EmitSettings(uint32_t recorded_begin);
  // Adds a request; `event` is the one that stands for it, or kNoEvent.
  void Emit(const Event& request, uint32_t event, uint32_t recorded_begin);
  void AddRequest(const Event& request, uint32_t event);

  Event event(uint32_t i) const { return schedule_.events()[i]; }
  uint32_t event_count() const { return static_cast<uint32_t>(source_.events.size()); }

  Schedule schedule_;
  const DeviceTrace& source_;
  AllocationId* ids_ = nullptr;  // the schedule's
  LiveMap live_;
  AllocationId next_id_ = 0;
  std::vector<EventRole> roles_;
  static constexpr Range kNowhere = {1, 0};
  std::vector<Range> segment_ranges_;  // of addresses, in which segments lie at the end, or ever
  Range near_ = kNowhere;              // the one in which the last allocation was
  std::vector<uint32_t> elsewhere_;    // allocs in no segment of the end
  bool has_completions_ = false;       // the file records when frees complete
  bool infer_record_stream_ = true;
  GroupingFacts facts_;
  std::vector<SettingsChange> changes_;
  size_t next_change_ = 0;
  bool infer_pool_release_ = true;
  std::vector<bool> pool_released_;  // by pool

  // The ranks of late completions, by the index of the free_requested and of the free_completed.
  // Ranks are in recorded order; completions that never come have the last ones.
  absl::flat_hash_map<uint32_t, uint32_t> late_rank_;
  uint32_t late_count_ = 0;
  uint32_t pending_for_good_ = 0;  // pending at the start and still at the end
  uint32_t first_late_stream_ = 0;
  uint32_t outstanding_ = 0;          // pending frees at this request
  std::vector<uint32_t> done_after_;  // ranks that complete after the last request
};

}  // namespace memreplay

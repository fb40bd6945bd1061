// Builds a Schedule; used by Schedule::Build and BuildRecorded only.
#ifndef MEMREPLAY_TRACE_SCHEDULE_SCHEDULE_BUILDER_H_
#define MEMREPLAY_TRACE_SCHEDULE_SCHEDULE_BUILDER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "trace/schedule/recorded_groups.h"
#include "trace/schedule/schedule.h"

namespace memreplay {

// Makes the Schedule of one device of a trace.
class ScheduleBuilder {
 public:
  ScheduleBuilder(std::shared_ptr<const Trace> trace, size_t device_index, InferredPools inferred);
  Schedule Build() &&;
  Schedule BuildRecorded() &&;

 private:
  static constexpr uint32_t kNotRequested = 0xffffffff;
  static constexpr uint32_t kNoEvent = 0xffffffff;

  struct Live {
    AllocationId id = kNoAllocation;
    uint32_t since = 0;                     // index of the alloc event
    uint32_t free_request = kNotRequested;  // index of a free that is not complete yet
  };
  using LiveMap = absl::flat_hash_map<uint64_t, Live>;

  // Programs: addresses are handles. schedule_program.cc
  void BuildProgram();
  // Those that are expanded again are sound and have ids: nothing is looked at.
  void TakeExpanded(const EventSource& source);

  // Recordings, in this order. schedule_recorded.cc
  void FindAllocations();  // up to SortStarts()
  void TellPools();
  void Identify();  // ids, roles, start allocations that the trace frees
  void IdentifyAlloc(uint32_t i);
  uint32_t IdentifyFree(uint32_t i);  // returns the last event dealt with
  void IdentifyCompletion(uint32_t i);
  AllocationId AddStart(uint32_t i, BlockState state);
  void ReadFinalState();  // ids of its blocks, start allocations never freed
  void SortStarts();
  void NumberLateStreams();
  void MeasureReserved();  // at the start, and at most
  void CheckAllocsAreInSegments();
  void DescribeHead();
  void MakeRequests();
  void EmitGroup(const RecordedGroup& group);
  void EmitCompletions(const RecordedGroup& group);
  void EmitEmptyCache(const RecordedGroup& group);
  void EmitPoolReleases(const RecordedGroup& group);
  void EmitStreamDone(uint32_t rank, uint32_t recorded_begin);
  // `event`: the one that stands for it, kNoEvent for none.
  void Emit(const Event& request, uint32_t event, uint32_t recorded_begin);
  void AddRequest(const Event& request, uint32_t event);

  Event event(uint32_t i) const { return schedule_.events()[i]; }
  uint32_t event_count() const { return static_cast<uint32_t>(source_.events.size()); }

  Schedule schedule_;
  const DeviceTrace& source_;
  LiveMap live_;
  AllocationId next_id_ = 0;
  std::vector<EventRole> roles_;
  bool has_completions_ = false;  // the file says which frees are done, and when
  bool infer_record_stream_ = true;
  GroupingFacts facts_;
  bool infer_pool_release_ = true;
  std::vector<bool> pool_released_;  // by pool

  // Late completions have a rank each, in recorded order; those that never
  // come have the last ranks. By the index of the free_requested and of the
  // free_completed.
  absl::flat_hash_map<uint32_t, uint32_t> late_rank_;
  uint32_t late_count_ = 0;
  uint32_t pending_for_good_ = 0;  // pending at the start and at the end
  uint32_t first_late_stream_ = 0;
  uint32_t outstanding_ = 0;          // pending frees at this point of the requests
  std::vector<uint32_t> done_after_;  // ranks, done once the last request is
};

}  // namespace memreplay

#endif  // MEMREPLAY_TRACE_SCHEDULE_SCHEDULE_BUILDER_H_

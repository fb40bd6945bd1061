// Recordings: identities, start allocations, and the requests that caused the events.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "trace/schedule/recorded_pools.h"
#include "trace/schedule/schedule_builder.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

std::string At(Address address) { return absl::StrCat("address 0x", absl::Hex(address.value())); }

void AddDivisions(uint64_t divisions, SettingsFacts* facts) {
  if (divisions == 0) return;
  const uint64_t least = facts->roundup_divisions;
  facts->roundup_divisions = least == 0 ? divisions : std::min(least, divisions);
}

SettingsFacts FactsOf(const RecordedSettings& settings) {
  SettingsFacts facts;
  if (const int64_t bytes = settings.max_split_size.value_or(-1); bytes >= 0) {
    facts.max_split_size = Bytes(static_cast<uint64_t>(bytes));
  }
  facts.releases_may_be_partial =
      facts.max_split_size.has_value() || settings.garbage_collection_threshold.value_or(0) > 0;
  for (const auto& [megabytes, divisions] : settings.roundup_power2_divisions) {
    AddDivisions(divisions, &facts);
  }
  return facts;
}

// Returns the facts of a text that a script set, such as
// "max_split_size_mb:20,roundup_power2_divisions:[256:1,>:4]". Each text resets all of them.
SettingsFacts FactsOf(std::string_view conf) {
  SettingsFacts facts;
  for (const absl::string_view part : absl::StrSplit(ToAbsl(conf), absl::ByAnyChar(",[]"))) {
    const std::pair<absl::string_view, absl::string_view> words =
        absl::StrSplit(part, absl::MaxSplits(':', 1));
    const absl::string_view key = absl::StripAsciiWhitespace(words.first);
    uint64_t number = 0;
    double share = 0;
    if (key == "max_split_size_mb" && absl::SimpleAtoi(words.second, &number)) {
      facts.max_split_size = MiB(std::min(number, kMaxDeviceMemory / MiB(1)));
      facts.releases_may_be_partial = true;
    } else if (key == "garbage_collection_threshold" && absl::SimpleAtod(words.second, &share)) {
      facts.releases_may_be_partial |= share > 0;
    } else if ((key == "roundup_power2_divisions" || key == ">" ||
                absl::SimpleAtoi(key, &number)) &&
               absl::SimpleAtoi(words.second, &number)) {
      AddDivisions(number, &facts);
    }
  }
  return facts;
}

bool SetsLargeSegments(std::string_view conf) {
  return conf.find("large_segment_size") != std::string_view::npos;
}

}  // namespace

void ScheduleBuilder::ReportPools() {
  const Trace& trace = schedule_.trace();
  pool_released_.assign(schedule_.pools().size(), false);
  if (!schedule_.inferred_.of_event.empty()) return;
  if (trace.pools.size() < 2 || trace.layout.has_event_pool_id || !source_.has_final_state) return;
  const bool told = absl::c_any_of(source_.events, [](const Event& e) { return e.pool != 0; });
  if (!told) {
    schedule_.pools_ = PoolsBySegments(source_.final_state, trace.pools, EventView(source_.events));
  }
}

void ScheduleBuilder::ReadSettings() {
  const Trace& trace = schedule_.trace();
  if (const auto& settings = trace.settings; settings.has_value()) {
    facts_.settings = FactsOf(*settings);
    if (SetsLargeSegments(settings->conf)) facts_.large_page = Bytes();
  }
  const std::vector<uint32_t> start = SettingsAtStart(trace);
  if (!start.empty()) facts_.settings = FactsOf(trace.strings[start.back()]);
  for (const uint32_t text : start) {
    if (SetsLargeSegments(trace.strings[text])) facts_.large_page = Bytes();
  }
  changes_ = SettingsChanges(schedule_.device_trace(), start);
  SettingsFacts current = facts_.settings;
  for (const SettingsChange& change : changes_) {
    const std::string_view text = trace.strings[change.text];
    const bool is_limited = change.kind == EventKind::kFraction || current.is_limited;
    if (change.kind == EventKind::kSettings) {
      current = FactsOf(text);
      if (SetsLargeSegments(text)) facts_.large_page = Bytes();
    }
    current.is_limited = is_limited;
    facts_.changes.emplace_back(change.event, current);
  }
}

void ScheduleBuilder::ReadPoolFlags() {
  const std::vector<PoolId>& pools = schedule_.pools();
  std::vector<uint64_t>& flags = schedule_.inferred_.flags;
  for (const MemoryNote& note : schedule_.device_trace().notes) {
    // What a pool served when memory ran out has that pool's segments already.
    const std::string_view options = schedule_.trace().strings[note.name];
    if (note.kind != NoteKind::kPool || options.find(kNoSplitOption) == options.npos) continue;
    const auto found = std::find(pools.begin() + 1, pools.end(), PoolId{0, note.address.value()});
    if (found == pools.end()) continue;
    const auto pool = static_cast<size_t>(found - pools.begin());
    flags.resize(std::max(flags.size(), pool + 1));
    flags[pool] = kPoolNoSplit;
  }
}

void ScheduleBuilder::Identify() {
  const absl::Span<const Event> events = source_.events.kept();
  const uint32_t count = event_count();
  roles_.assign(count, EventRole::kAside);
  // Those of 2.1 and 2.2 have others, and those of 2.5 on have these.
  facts_.completions_have_stacks = schedule_.trace().layout.has_external_annotations;
  ReadSettings();
  ReadPoolFlags();
  for (const SegmentInfo& segment : source_.final_state) {
    segment_ranges_.emplace_back(segment.address.value(),
                                 (segment.address + segment.total_size).value());
  }
  segment_ranges_ = Joined(std::move(segment_ranges_));
  has_completions_ = EndOfLife(schedule_.trace(), source_) == EventKind::kFreeCompleted;
  for (uint32_t i = 0; i < count; ++i) {
    const EventKind kind = events[i].kind;
    if (kind == EventKind::kAlloc) {
      IdentifyAlloc(i);
    } else if (kind == EventKind::kFree) {
      i = IdentifyFree(i);
    } else if (kind == EventKind::kFreeCompleted) {
      IdentifyCompletion(i);
    } else if (IsSegmentEvent(kind)) {
      roles_[i] = EventRole::kSegmentEffect;
      schedule_.segment_events_.push_back(i);
    } else if (kind == EventKind::kOom) {
      ids_[i] = next_id_++;
      roles_[i] = EventRole::kRequest;
    } else if (kind == EventKind::kRecordStream) {
      const auto it = live_.find(events[i].address.value());
      ids_[i] = it != live_.end() ? it->second.id : AddStart(i, BlockState::kAllocated);
      roles_[i] = EventRole::kRequest;
      infer_record_stream_ = false;
    } else if (IsRequest(kind)) {
      roles_[i] = EventRole::kRequest;
      if (kind == EventKind::kEmptyCache) facts_.infer_empty_cache = false;
      if (kind == EventKind::kPoolRelease) infer_pool_release_ = false;
    }
  }
}

void ScheduleBuilder::IdentifyAlloc(uint32_t i) {
  const Event& alloc = source_.events[i];
  const AllocationId id = next_id_++;
  roles_[i] = EventRole::kRequest;
  ids_[i] = id;
  if (source_.has_final_state && !IsInSegment(alloc)) elsewhere_.push_back(i);
  const auto [it, is_new] = live_.try_emplace(alloc.address.value());
  if (!is_new) {
    schedule_.diagnostics_.Add(
        DiagnosticKind::kAllocOverLiveBlock, i,
        absl::StrCat(At(alloc.address), ", live since event ", it->second.since));
  }
  it->second = Live{id, i};
}

uint32_t ScheduleBuilder::IdentifyFree(uint32_t i) {
  const absl::Span<const Event> events = source_.events.kept();
  const Address address = events[i].address;
  auto it = live_.find(address.value());
  if (it == live_.end()) {
    schedule_.diagnostics_.Add(DiagnosticKind::kFreeOfUnknownAddress, i, At(address));
    ids_[i] = AddStart(i, BlockState::kAllocated);
    it = live_.find(address.value());
  } else if (it->second.free_request != kNotRequested) {
    schedule_.diagnostics_.Add(
        DiagnosticKind::kFreeOfUnknownAddress, i,
        absl::StrCat(At(address), " was freed before, by event ", it->second.free_request));
    return i;  // remains kAside
  }
  ids_[i] = it->second.id;
  roles_[i] = EventRole::kRequest;
  const uint32_t next = i + 1;
  if (next < events.size() && events[next].kind == EventKind::kFreeCompleted &&
      events[next].address == address) {
    ids_[next] = it->second.id;
    roles_[next] = EventRole::kOwnCompletion;
    live_.erase(it);
    return next;
  }
  if (has_completions_) {
    it->second.free_request = i;
  } else {
    live_.erase(it);  // without completions in the file, no free is known to be late
  }
  return i;
}

void ScheduleBuilder::IdentifyCompletion(uint32_t i) {
  const Event& completion = source_.events[i];
  auto it = live_.find(completion.address.value());
  if (it != live_.end() && it->second.free_request == kNotRequested) {
    // The block was allocated in the trace and never freed, so the request is missing.
    schedule_.diagnostics_.Add(DiagnosticKind::kFreeCompletedWithoutRequest, i,
                               At(completion.address));
    ids_[i] = it->second.id;
    roles_[i] = EventRole::kImpliedFree;
    live_.erase(it);
    return;
  }
  if (it == live_.end() && i == 0) {
    // The completed free is the last lost event.
    schedule_.diagnostics_.Add(DiagnosticKind::kFreeCompletedWithoutRequest, i,
                               At(completion.address));
    return;  // remains kAside
  }
  roles_[i] = EventRole::kLateCompletion;
  if (it == live_.end()) {
    // The block was freed before the recording began.
    schedule_.diagnostics_.Add(DiagnosticKind::kFreeCompletedWithoutRequest, i,
                               At(completion.address));
    ids_[i] = AddStart(i, BlockState::kPendingFree);
    it = live_.find(completion.address.value());
  } else {
    ids_[i] = it->second.id;
    late_rank_.emplace(it->second.free_request, late_count_);
  }
  late_rank_.emplace(i, late_count_++);
  live_.erase(it);
}

AllocationId ScheduleBuilder::AddStart(uint32_t i, BlockState state) {
  const Event& e = source_.events.kept()[i];
  StartAllocation start;
  start.id = next_id_++;
  start.address = e.address;
  start.requested_size = e.size;
  start.state = state;
  start.stream = e.stream;
  start.stack = e.kind == EventKind::kFree ? kNoStack : e.text_or_stack;
  if (state == BlockState::kPendingFree) {
    start.pending_stream = schedule_.stream_count_ + late_count_;
    ++outstanding_;
  }
  schedule_.start_allocations_.push_back(start);
  live_.emplace(e.address.value(), Live{start.id, i});
  return start.id;
}

void ScheduleBuilder::ReadFinalState() {
  schedule_.has_final_state_ = source_.has_final_state;
  if (!source_.has_final_state) return;
  schedule_.final_state_ = source_.final_state;
  const std::vector<StreamHandle>& streams = schedule_.trace().streams;

  absl::flat_hash_map<uint64_t, std::pair<SegmentInfo*, BlockInfo*>> unknown;
  for (SegmentInfo& segment : schedule_.final_state_) {
    for (BlockInfo& block : segment.blocks) {
      if (block.state == BlockState::kInactive) continue;
      if (const auto it = live_.find(block.address.value()); it != live_.end()) {
        block.id = it->second.id;
      } else {
        unknown.emplace(block.address.value(), std::make_pair(&segment, &block));
      }
    }
  }
  // A block that is active at the end and absent from the trace was live throughout. One that the
  // trace frees was allocated after the recording ended.
  if (!unknown.empty()) {
    for (const Event& e : source_.events) {
      if (e.kind == EventKind::kAlloc || e.kind == EventKind::kFree ||
          e.kind == EventKind::kFreeCompleted) {
        unknown.erase(e.address.value());
      }
    }
  }
  const auto late_at_end =
      // In any order.
      static_cast<uint32_t>(absl::c_count_if(
          live_, [](const auto& entry) { return entry.second.free_request != kNotRequested; }));
  uint32_t pending = 0;
  for (SegmentInfo& segment : schedule_.final_state_) {
    for (BlockInfo& block : segment.blocks) {
      if (block.state == BlockState::kInactive || !unknown.contains(block.address.value())) {
        continue;
      }
      StartAllocation start;
      start.id = block.id = next_id_++;
      start.address = block.address;
      start.requested_size = block.requested_size;
      start.block_size = block.size;
      start.state = block.state;
      start.stack = block.stack;
      const auto stream = std::lower_bound(streams.begin(), streams.end(), segment.stream);
      start.stream = static_cast<uint32_t>(stream - streams.begin());
      if (block.state == BlockState::kPendingFree) {
        // Never completes, so its rank follows all of the trace's.
        start.pending_stream = schedule_.stream_count_ + late_count_ + late_at_end + pending++;
        ++outstanding_;
      }
      schedule_.start_allocations_.push_back(start);
    }
  }
  // Start allocations whose late free is still pending at the end have their extent in the final
  // state too.
  absl::flat_hash_map<AllocationId, Bytes> extents;
  for (const SegmentInfo& segment : schedule_.final_state_) {
    for (const BlockInfo& block : segment.blocks) {
      if (block.state == BlockState::kPendingFree) extents.emplace(block.id, block.size);
    }
  }
  for (StartAllocation& start : schedule_.start_allocations_) {
    const auto it = extents.find(start.id);
    if (it != extents.end()) start.block_size = it->second;
  }
  pending_for_good_ = pending;
}

void ScheduleBuilder::SortStarts() {
  std::sort(schedule_.start_allocations_.begin(), schedule_.start_allocations_.end(),
            [](const StartAllocation& a, const StartAllocation& b) {
              return std::pair(a.address, a.id) < std::pair(b.address, b.id);
            });
}

// Cuts sizes that no GPU has, so that everybody can add them.
void ScheduleBuilder::BoundStarts() {
  Bytes left = kAddressesEnd - Address();
  for (StartAllocation& start : schedule_.start_allocations_) {
    start.requested_size = std::min({start.requested_size, kMaxDeviceMemory, left});
    left -= start.requested_size;
  }
}

void ScheduleBuilder::NumberLateStreams() {
  std::vector<uint32_t> never_done;            // free requests
  for (const auto& [address, live] : live_) {  // in any order
    if (live.free_request != kNotRequested) never_done.push_back(live.free_request);
  }
  std::sort(never_done.begin(), never_done.end());
  for (uint32_t request : never_done) late_rank_.emplace(request, late_count_++);
  if (infer_record_stream_) {
    first_late_stream_ = schedule_.stream_count_;
    schedule_.stream_count_ += late_count_ + pending_for_good_;
  }
}

void ScheduleBuilder::MeasureReserved() {
  int64_t change = 0;  // since the start
  int64_t lowest = 0;
  int64_t highest = 0;
  for (const uint32_t i : schedule_.segment_events_) {
    const Event& e = source_.events[i];
    const bool supply = e.kind == EventKind::kSegmentAlloc || e.kind == EventKind::kSegmentMap;
    const int64_t size = std::min(e.size, kMaxDeviceMemory).signed_value();
    change += supply ? size : -size;
    lowest = std::min(lowest, change);
    highest = std::max(highest, change);
  }
  int64_t at_end = 0;
  for (const SegmentInfo& segment : schedule_.final_state_) {
    at_end += std::min(segment.total_size, kMaxDeviceMemory).signed_value();
  }
  // Without a final state, assumes the minimum that the releases allow.
  const int64_t at_start =
      std::max(-lowest, schedule_.has_final_state_ ? at_end - change : int64_t{0});
  facts_.reserved_at_start = Bytes(static_cast<uint64_t>(at_start));
  facts_.peak_reserved = Bytes(static_cast<uint64_t>(at_start + highest));
}

std::vector<ScheduleBuilder::Range> ScheduleBuilder::Joined(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end());
  std::vector<Range> joined;
  for (const Range& range : ranges) {
    if (!joined.empty() && range.first <= joined.back().second) {
      joined.back().second = std::max(joined.back().second, range.second);
    } else {
      joined.push_back(range);
    }
  }
  return joined;
}

ScheduleBuilder::Range ScheduleBuilder::RangeWith(uint64_t address) const {
  const auto it = std::upper_bound(segment_ranges_.begin(), segment_ranges_.end(),
                                   Range(address, ~uint64_t{0}));
  return it == segment_ranges_.begin() ? kNowhere : *std::prev(it);
}

void ScheduleBuilder::CheckAllocsAreInSegments() {
  if (!schedule_.has_final_state_ || elsewhere_.empty()) return;
  // Without a final state, segments without events would be unknown.
  const absl::Span<const Event> events = source_.events.kept();
  for (const uint32_t i : schedule_.segment_events_) {
    const Event& e = events[i];
    segment_ranges_.emplace_back(e.address.value(), (e.address + e.size).value());
  }
  segment_ranges_ = Joined(std::move(segment_ranges_));
  near_ = kNowhere;
  for (const uint32_t i : elsewhere_) {
    if (!IsInSegment(events[i])) {
      schedule_.diagnostics_.Add(DiagnosticKind::kAllocOutsideSegments, i, At(events[i].address));
    }
  }
}

void ScheduleBuilder::DescribeHead() {
  bool cold = schedule_.start_allocations_.empty() && facts_.reserved_at_start == Bytes();
  if (cold && !schedule_.has_final_state_) {
    // The first allocation of a device requires a segment.
    for (const Event& e : source_.events.kept()) {
      if (IsSegmentEvent(e.kind)) break;
      if (e.kind == EventKind::kAlloc) {
        cold = false;
        break;
      }
    }
  }
  schedule_.is_cold_ = cold;
  if (cold || source_.events.empty()) return;
  schedule_.diagnostics_.Add(
      DiagnosticKind::kLostHead, 0,
      absl::StrCat(schedule_.start_allocations_.size(), " blocks were live and ",
                   facts_.reserved_at_start.value(), " bytes reserved before the first event"));
}

// --- Requests ---

void ScheduleBuilder::MakeRequests() {
  // Few requests are not an event of the file.
  const auto told =
      static_cast<size_t>(std::count(roles_.begin(), roles_.end(), EventRole::kRequest));
  schedule_.request_from_.reserve(told + 2 * late_count_);
  schedule_.recorded_begin_.reserve(told + 2 * late_count_);
  const bool adds_none = changes_.empty() && late_count_ == 0 && pool_released_.size() < 2;
  GroupRecorded(schedule_.events(), roles_, facts_, [this, adds_none](const RecordedGroup& group) {
    if (adds_none && group.request < RequestView::kOwn) {
      EmitOwn(group);
    } else {
      EmitGroup(group);
    }
  });
  for (uint32_t rank : std::exchange(done_after_, {})) {
    EmitStreamDone(rank, event_count());
  }
}

void ScheduleBuilder::EmitGroup(const RecordedGroup& group) {
  if (next_change_ < changes_.size()) EmitSettings(group.begin);
  if (late_count_ > 0) EmitCompletions(group);
  if (group.request == RecordedGroup::kInferredEmptyCache) return EmitEmptyCache(group);
  EmitPoolReleases(group);
  if (!late_rank_.empty() && infer_record_stream_ &&
      schedule_.events().kind(group.request) == EventKind::kFree) {
    const auto late = late_rank_.find(group.request);
    if (late != late_rank_.end()) {
      const Event told = event(group.request);
      schedule_.diagnostics_.Add(DiagnosticKind::kInferredRecordStream, group.request,
                                 At(told.address));
      Emit({.kind = EventKind::kRecordStream,
            .id = told.id,
            .stream = first_late_stream_ + late->second},
           kNoEvent, group.begin);
      ++outstanding_;
    }
  }
  if (group.request < RequestView::kOwn) {
    EmitOwn(group);
  } else {
    Emit(RequestView::AsRequest(event(group.request)), group.request, group.begin);
  }
}

void ScheduleBuilder::EmitEmptyCache(const RecordedGroup& group) {
  // The destruction of a MemPool releases memory with another stack than the empty_cache() after
  // it.
  uint32_t own = group.begin;
  while (own < group.end && event(own).pool != 0) ++own;
  if (own > group.begin && own < group.end) {
    const uint32_t destroyed = event(own - 1).text_or_stack;
    const uint32_t emptied = event(own).text_or_stack;
    if (destroyed != emptied && destroyed != kNoStack && emptied != kNoStack) {
      EmitEmptyCache({group.begin, own, group.request});
      return EmitEmptyCache({own, group.end, group.request});
    }
  }
  Bytes released;
  bool only_private = true;
  for (uint32_t i = group.begin; i < group.end; ++i) {
    if (roles_[i] == EventRole::kSegmentEffect) released += event(i).size;
    only_private &= event(i).pool != 0;
  }
  schedule_.diagnostics_.Add(DiagnosticKind::kInferredEmptyCache, group.begin,
                             absl::StrCat(released.value(), " bytes released"));
  // The destruction of a MemPool empties only that pool's cache, empty_cache() during the use of a
  // pool spares the default pools, and several calls may follow each other. Emptying one pool after
  // the other covers all of these, except for pools that a call for all pools releases anyway.
  Event request = {.kind = EventKind::kEmptyCache};
  // A call for one pool would have released something.
  if (released == Bytes()) return Emit(request, kNoEvent, group.begin);
  uint32_t begin = group.begin;
  if (!only_private) {
    for (uint32_t i = group.begin; i < group.end; ++i) {
      if (event(i).pool == 0 || pool_released_[event(i).pool]) begin = i + 1;
    }
    EmitPoolReleases({group.begin, begin, group.request});
    Emit(request, kNoEvent, group.begin);
  }
  for (uint32_t i = begin; i < group.end; ++i) {
    if (i > begin && event(i).pool == event(i - 1).pool) continue;
    EmitPoolReleases({i, i + 1, group.request});
    request.pool = event(i).pool;
    Emit(request, kNoEvent, i);
  }
}

// Emits the releases of private pools. The memory of a private pool is freed when the last
// reference to the pool is gone, which PyTorch does not record.
void ScheduleBuilder::EmitPoolReleases(const RecordedGroup& group) {
  if (pool_released_.size() < 2 || !infer_pool_release_) return;
  const uint16_t own =
      group.request == RecordedGroup::kInferredEmptyCache ? 0 : event(group.request).pool;
  for (uint32_t i = group.begin; i < group.end; ++i) {
    const Event& e = event(i);
    if (e.kind != EventKind::kSegmentFree && e.kind != EventKind::kSegmentUnmap) continue;
    // Under max_split_size a malloc releases cached segments of its own pool.
    if (e.pool == 0 || e.pool == own || pool_released_[e.pool]) continue;
    pool_released_[e.pool] = true;
    Emit({.kind = EventKind::kPoolRelease, .pool = e.pool}, kNoEvent, group.begin);
  }
}

void ScheduleBuilder::EmitCompletions(const RecordedGroup& group) {
  if (!infer_record_stream_) return;
  for (uint32_t rank : std::exchange(done_after_, {})) EmitStreamDone(rank, group.begin);
  uint32_t completed = 0;
  bool releases = false;
  for (uint32_t i = group.begin; i < group.end; ++i) {
    completed += roles_[i] == EventRole::kLateCompletion ? 1 : 0;
    releases |= event(i).kind == EventKind::kSegmentFree ||
                event(i).kind == EventKind::kSegmentUnmap || event(i).kind == EventKind::kOom;
  }
  if (completed == 0) return;
  outstanding_ -= std::min(outstanding_, completed);
  // A malloc polls at its start; a flush inside it waits for everything. Blocks that a flush waited
  // for complete after the request, which would have reused them otherwise.
  const bool is_malloc = group.request != RecordedGroup::kInferredEmptyCache &&
                         event(group.request).kind != EventKind::kEmptyCache;
  bool by_flush = is_malloc && releases && outstanding_ == 0;
  for (uint32_t i = group.begin; i < group.end; ++i) {
    if (roles_[i] == EventRole::kSegmentEffect) {
      by_flush |= is_malloc;
    } else if (roles_[i] == EventRole::kLateCompletion) {
      const uint32_t rank = late_rank_.find(i)->second;
      if (by_flush) {
        done_after_.push_back(rank);
      } else {
        EmitStreamDone(rank, group.begin);
      }
    }
  }
}

void ScheduleBuilder::EmitSettings(uint32_t recorded_begin) {
  for (; next_change_ < changes_.size() && changes_[next_change_].event <= recorded_begin;
       ++next_change_) {
    const SettingsChange& change = changes_[next_change_];
    Event request;
    if (change.kind == EventKind::kFraction) {
      request.set_fraction_of(change.fraction_of);
    } else {
      request.set_restores_settings(change.is_restoring);
    }
    request.text_or_stack = change.text;
    Emit(request, kNoEvent, recorded_begin);
  }
}

void ScheduleBuilder::EmitStreamDone(uint32_t rank, uint32_t recorded_begin) {
  Emit({.kind = EventKind::kStreamDone, .stream = first_late_stream_ + rank}, kNoEvent,
       recorded_begin);
}

void ScheduleBuilder::Emit(const Event& request, uint32_t event, uint32_t recorded_begin) {
  AddRequest(request, event);
  schedule_.recorded_begin_.push_back(recorded_begin);
}

}  // namespace memreplay

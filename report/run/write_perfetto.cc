#include <array>
#include <functional>
#include <queue>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "proto/perfetto.pb.h"
#include "report/run/run_walk.h"
#include "report/words/stack_names.h"
#include "report/words/text.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

class Writer {
 public:
  Writer(const Schedule& schedule, const Meanings& meanings, const RunLog& log, bool slices,
         ByteSink& sink)
      : schedule_(schedule),
        meanings_(meanings),
        log_(log),
        names_(schedule.trace()),
        slices_(slices),
        output_(sink),
        lanes_(log.allocations.size()),
        // Tracks of several devices in one file must not have the same ids.
        process_((static_cast<uint64_t>(schedule.device()) + 1) << 40),
        next_track_(process_ + 1) {}

  absl::Status Write() {
    perfetto::TrackDescriptor process;
    process.set_uuid(process_);
    process.mutable_process()->set_pid(schedule_.device() + 1);
    process.mutable_process()->set_process_name(StrCat("device ", schedule_.device()));
    Describe(process);
    for (size_t i = 0; i < kUsageKinds; ++i) {
      counters_[i] = AddTrack(process_, UsageName(static_cast<UsageKind>(i)), true);
    }
    AddCategories();
    RunWalk walk(schedule_, log_);
    EnterPhase(0, 0);
    for (uint32_t i = 0; slices_ && i < log_.start_allocations; ++i) Begin(0, i);
    Usage before;
    int64_t time = 0;
    Count(time, walk.usage(), nullptr);
    before = walk.usage();
    while (walk.Next()) {
      time = walk.time_us();
      EnterPhase(time, log_.positions[walk.event()]);
      Count(time, walk.usage(), &before);
      before = walk.usage();
      if (walk.kind() == EventKind::kAlloc) CountCategory(time, walk.allocation(), true);
      if (walk.kind() == EventKind::kFreeCompleted) CountCategory(time, walk.allocation(), false);
      if (slices_ && walk.kind() == EventKind::kAlloc) Begin(time, walk.allocation());
      if (slices_ && walk.kind() == EventKind::kFreeCompleted) End(time, walk.allocation());
      if (walk.other() != nullptr) Instant(time, walk.other()->what);
      output_.MaybeFlush();
    }
    for (uint32_t i = 0; slices_ && i < lanes_.size(); ++i) {
      if (lanes_[i] != 0) End(time + 1, i);
    }
    LeavePhase(time + 1);
    return output_.Finish();
  }

 private:
  void Append(const perfetto::TracePacket& packet) {
    perfetto::Trace trace;
    *trace.add_packet() = packet;
    trace.AppendToString(&output_.text());
  }
  void Describe(const perfetto::TrackDescriptor& track) {
    perfetto::TracePacket packet;
    packet.set_trusted_packet_sequence_id(1);
    *packet.mutable_track_descriptor() = track;
    Append(packet);
  }
  perfetto::TracePacket At(int64_t time, uint64_t track, perfetto::TrackEvent::Type type) {
    perfetto::TracePacket packet;
    packet.set_timestamp(static_cast<uint64_t>(time) * 1000);
    packet.set_trusted_packet_sequence_id(1);
    packet.mutable_track_event()->set_track_uuid(track);
    packet.mutable_track_event()->set_type(type);
    return packet;
  }
  // Adds a track, perhaps of a counter of bytes, and returns its id.
  uint64_t AddTrack(uint64_t parent, std::string_view name, bool is_counter = false) {
    perfetto::TrackDescriptor track;
    track.set_uuid(next_track_);
    track.set_parent_uuid(parent);
    track.set_name(std::string(name));
    if (is_counter) {
      track.mutable_counter()->set_unit(perfetto::CounterDescriptor::UNIT_SIZE_BYTES);
    }
    Describe(track);
    return next_track_++;
  }
  void SetCounter(int64_t time, uint64_t track, Bytes value) {
    perfetto::TracePacket packet = At(time, track, perfetto::TrackEvent::TYPE_COUNTER);
    packet.mutable_track_event()->set_counter_value(value.signed_value());
    Append(packet);
  }

  // Active bytes by category, which add up to active_bytes.
  struct CategoryCount {
    uint64_t track = 0;  // 0: no memory is of this category
    Bytes active;
  };
  Category CategoryOf(uint32_t allocation) const {
    const AllocationId id = log_.allocations[allocation].id;
    return id < meanings_.of.size() ? meanings_.of[id].category : Category::kUnknown;
  }
  void AddCategories() {
    std::array<bool, kCategories> occurs = {};
    for (uint32_t i = 0; i < log_.allocations.size(); ++i) {
      CategoryCount& count = categories_[static_cast<size_t>(CategoryOf(i))];
      occurs[static_cast<size_t>(CategoryOf(i))] = true;
      if (i < log_.start_allocations) count.active += log_.allocations[i].block_size;
    }
    const uint64_t group = AddTrack(process_, "active_bytes by category");
    for (size_t c = 0; c < kCategories; ++c) {
      if (!occurs[c]) continue;
      categories_[c].track = AddTrack(group, CategoryName(static_cast<Category>(c)), true);
    }
    for (const CategoryCount& count : categories_) WriteCategory(0, count);
  }
  void WriteCategory(int64_t time, const CategoryCount& count) {
    if (count.track != 0) SetCounter(time, count.track, count.active);
  }
  void CountCategory(int64_t time, uint32_t allocation, bool is_new) {
    CategoryCount& count = categories_[static_cast<size_t>(CategoryOf(allocation))];
    const Bytes size = log_.allocations[allocation].block_size;
    count.active = is_new ? count.active + size : count.active - size;
    WriteCategory(time, count);
  }

  // Begins the slice of the phase that `position`, an event of the file, lies in, and ends the one
  // before.
  void EnterPhase(int64_t time, uint64_t position) {
    const size_t before = phase_;
    while (phase_ < meanings_.phases.size() && meanings_.phases[phase_].begin <= position) ++phase_;
    if (phase_ == before) return;
    if (before > 0) {
      LeavePhase(time);
    } else {
      phase_track_ = AddTrack(process_, "phase");
    }
    const PhaseSpan& phase = meanings_.phases[phase_ - 1];
    perfetto::TracePacket packet = At(time, phase_track_, perfetto::TrackEvent::TYPE_SLICE_BEGIN);
    packet.mutable_track_event()->set_name(phase.step == 0 || !meanings_.trains
                                               ? std::string(PhaseName(phase.phase))
                                               : StrCat(PhaseName(phase.phase), " ", phase.step));
    Append(packet);
  }
  void LeavePhase(int64_t time) {
    if (phase_ > 0) Append(At(time, phase_track_, perfetto::TrackEvent::TYPE_SLICE_END));
  }

  // Writes the figures that differ from `before`; all if it is null.
  void Count(int64_t time, const Usage& usage, const Usage* before) {
    for (size_t i = 0; i < kUsageKinds; ++i) {
      if (before != nullptr && before->bytes[i] == usage.bytes[i]) continue;
      SetCounter(time, counters_[i], usage.bytes[i]);
    }
  }
  void Instant(int64_t time, const Event& event) {
    std::string name;
    if (event.kind == EventKind::kMark) {
      name = CleanText(schedule_.trace().strings[event.text_or_stack]);
    } else if (event.kind == EventKind::kOom) {
      name = StrCat("out of memory: requested ", event.size.value(), " bytes");
    }
    if (name.empty()) return;
    perfetto::TracePacket packet = At(time, process_, perfetto::TrackEvent::TYPE_INSTANT);
    packet.mutable_track_event()->set_name(name);
    Append(packet);
  }

  // Slices of one track must nest, so a line of code has as many tracks as it has allocations at
  // once, and each takes the first that is free.
  struct Line {
    std::string name;
    uint64_t track = 0;
    std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> free;
  };
  Line& LineOf(uint32_t stack) {
    const auto [known, is_new] = line_of_stack_.try_emplace(stack, 0);
    if (is_new) {
      const std::string& name = names_.Line(stack);
      const auto [line, first] = line_of_name_.try_emplace(name, lines_.size());
      known->second = line->second;
      if (first) {
        lines_.push_back({name, AddTrack(process_, name), {}});
      }
    }
    return lines_[known->second];
  }
  void Begin(int64_t time, uint32_t index) {
    const RunLog::Allocation& allocation = log_.allocations[index];
    Line& line = LineOf(allocation.stack);
    if (line.free.empty()) line.free.push(AddTrack(line.track, line.name));
    lanes_[index] = line.free.top();
    line.free.pop();
    perfetto::TracePacket packet = At(time, lanes_[index], perfetto::TrackEvent::TYPE_SLICE_BEGIN);
    perfetto::TrackEvent& event = *packet.mutable_track_event();
    event.set_name(line.name);
    const auto annotate = [&event](const char* name) {
      perfetto::DebugAnnotation* const detail = event.add_debug_annotations();
      detail->set_name(name);
      return detail;
    };
    annotate("bytes")->set_uint_value(allocation.block_size.value());
    annotate("requested")->set_uint_value(allocation.requested_size.value());
    annotate("address")->set_pointer_value(allocation.address.value());
    annotate("category")->set_string_value(std::string(CategoryName(CategoryOf(index))));
    Append(packet);
  }
  void End(int64_t time, uint32_t index) {
    Append(At(time, lanes_[index], perfetto::TrackEvent::TYPE_SLICE_END));
    LineOf(log_.allocations[index].stack).free.push(lanes_[index]);
    lanes_[index] = 0;
  }

  const Schedule& schedule_;
  const Meanings& meanings_;
  const RunLog& log_;
  const StackNames names_;
  const bool slices_;
  BufferedOutput output_;
  std::vector<uint64_t> lanes_;  // track of each live allocation; 0: none
  const uint64_t process_;
  uint64_t next_track_;
  std::array<uint64_t, kUsageKinds> counters_ = {};
  std::array<CategoryCount, kCategories> categories_ = {};
  size_t phase_ = 0;  // how many of meanings_.phases have begun
  uint64_t phase_track_ = 0;
  absl::flat_hash_map<uint32_t, size_t> line_of_stack_;
  absl::flat_hash_map<std::string, size_t> line_of_name_;
  std::vector<Line> lines_;
};

}  // namespace

absl::Status WritePerfetto(const Schedule& schedule, const Meanings& meanings, const RunLog& log,
                           bool slices, ByteSink& sink) {
  return Writer(schedule, meanings, log, slices, sink).Write();
}

}  // namespace memreplay

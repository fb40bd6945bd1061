#include "sim/observe/trace_recorder.h"

#include <numeric>

namespace memreplay {
namespace {

// Copies the tables. Interning in order gives every text, frame and stack its old number.
void CopyTables(const Trace& source, Trace* trace) {
  for (uint32_t i = 0; i < source.strings.size(); ++i) trace->strings.Intern(source.strings[i]);
  for (uint32_t i = 0; i < source.stacks.frame_count(); ++i) {
    trace->stacks.InternFrame(source.stacks.frame(i));
  }
  for (uint32_t i = 0; i < source.stacks.size(); ++i) trace->stacks.InternStack(source.stacks[i]);
}

}  // namespace

void TraceRecorder::OnEvent(const Event& event) {
  if (!IsTraced(event.kind)) return;
  events_.push_back(event);
  events_.back().id = kNoAllocation;
  events_.back().block_size = Bytes();
}

Trace MakeRecording(const Trace& source, const RecordedSettings& settings,
                    std::string_view torch_release, std::vector<RecordedRun> runs) {
  Trace trace;
  trace.format = "simulated";
  trace.streams = source.streams;
  trace.pools = source.pools;
  CopyTables(source, &trace);
  trace.settings = settings;
  trace.torch_version = std::string(torch_release);
  for (RecordedRun& run : runs) {
    DeviceTrace& device = trace.devices.emplace_back();
    device.device = run.device;
    device.events = std::move(run.events);
    // Inferred pools belong to one device.
    const auto inferred = static_cast<uint16_t>(source.pools.size());
    const auto moved = static_cast<uint16_t>(trace.pools.size() - inferred);
    for (size_t pool = inferred; pool < run.pools.size(); ++pool) {
      trace.pools.push_back(run.pools[pool]);
    }
    for (Event& event : device.events.kept()) {
      if (event.pool >= inferred) event.pool = static_cast<uint16_t>(event.pool + moved);
    }
    // A simulated run has no clock, so events are one microsecond apart.
    device.time_us.resize(device.events.size());
    std::iota(device.time_us.begin(), device.time_us.end(), int64_t{0});
    device.has_final_state = true;
    device.final_state = std::move(run.final_state);
    for (SegmentInfo& segment : device.final_state) {
      for (BlockInfo& block : segment.blocks) block.id = kNoAllocation;
    }
  }
  return trace;
}

}  // namespace memreplay

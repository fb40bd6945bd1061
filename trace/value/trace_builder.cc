#include "trace/value/trace_builder.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {

TraceBuilder::Entry& TraceBuilder::Find(int device) {
  if (last_entry_ != nullptr && last_device_ == device) return *last_entry_;
  Entry& entry = devices_[device];
  entry.trace.device = device;
  last_entry_ = &entry;
  last_device_ = device;
  return entry;
}

uint32_t TraceBuilder::StreamNumber(StreamHandle handle) {
  if (last_stream_ != kNoStream && last_handle_ == handle.value()) return last_stream_;
  const auto [it, inserted] =
      stream_numbers_.try_emplace(handle.value(), static_cast<uint32_t>(trace_.streams.size()));
  if (inserted) {
    if (trace_.streams.size() >= kMaxStreams) {
      stream_numbers_.erase(it);
      return kNoStream;
    }
    trace_.streams.push_back(handle);
  }
  last_handle_ = handle.value();
  last_stream_ = it->second;
  return last_stream_;
}

std::optional<uint16_t> TraceBuilder::PoolIndex(PoolId pool) {
  if (pool.is_default()) return 0;
  const auto it = pool_indexes_.find({pool.first, pool.second});
  if (it != pool_indexes_.end()) return it->second;
  if (trace_.pools.size() >= kMaxPools) return std::nullopt;
  const auto index = static_cast<uint16_t>(trace_.pools.size());
  trace_.pools.push_back(pool);
  pool_indexes_.emplace(std::pair{pool.first, pool.second}, index);
  return index;
}

void TraceBuilder::Add(int device, const Event& event) {
  Entry& entry = Find(device);
  entry.trace.events.push_back(event);
  // The sum wraps rather than overflows, since a hostile file may start at the last tick.
  entry.clock = static_cast<int64_t>(static_cast<uint64_t>(entry.clock) + 1);
  if (entry.has_times) entry.trace.time_us.push_back(entry.clock);
}

void TraceBuilder::AddAt(int device, const Event& event, int64_t time_us) {
  Entry& entry = Find(device);
  if (!entry.has_times) {
    entry.has_times = true;
    entry.trace.time_us.resize(entry.trace.events.size());
    std::iota(entry.trace.time_us.begin(), entry.trace.time_us.end(), int64_t{1});
  }
  entry.trace.events.push_back(event);
  entry.clock = time_us;
  entry.trace.time_us.push_back(time_us);
}

std::vector<uint32_t> SortedStreams(std::vector<StreamHandle>* streams) {
  std::vector<uint32_t> order(streams->size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return (*streams)[a] < (*streams)[b]; });
  std::vector<uint32_t> renumbered(order.size());
  for (uint32_t i = 0; i < order.size(); ++i) renumbered[order[i]] = i;
  std::sort(streams->begin(), streams->end());
  return renumbered;
}

Trace TraceBuilder::Finish() && {
  const std::vector<uint32_t> renumbered = SortedStreams(&trace_.streams);
  for (auto& [device, entry] : devices_) {
    for (Event& event : entry.trace.events.kept()) {
      event.stream = event.stream == kNoStream ? 0 : renumbered[event.stream];
    }
    trace_.devices.push_back(std::move(entry.trace));
  }
  return std::move(trace_);
}

namespace {

absl::Status Wrong(std::string_view what) {
  return absl::FailedPreconditionError(StrCat("the trace is not well formed: ", what));
}

absl::Status CheckDevice(const Trace& trace, const DeviceTrace& device) {
  const auto where = [&](size_t i) {
    return StrCat("event ", i, " of device ", device.device, " ");
  };
  if (!device.time_us.empty() && device.time_us.size() != device.events.size()) {
    return Wrong(StrCat("device ", device.device, " has ", device.events.size(), " events and ",
                        device.time_us.size(), " times"));
  }
  const size_t streams = std::max<size_t>(trace.streams.size(), 1);
  for (size_t i = 0; i < device.events.size(); ++i) {
    const Event& event = device.events[i];
    if (event.kind > EventKind::kSnapshot) return Wrong(where(i) + "has an unknown kind");
    if (event.scratch != 0) return Wrong(where(i) + "is what a reader had at work");
    if (event.stream >= streams) return Wrong(where(i) + "is on a stream not in the table");
    if (event.pool >= trace.pools.size()) return Wrong(where(i) + "is in a pool not in the table");
    const size_t limit = HasText(event.kind) ? trace.strings.size() : trace.stacks.size();
    if (event.text_or_stack >= limit) {
      return Wrong(where(i) + "refers to a text or stack not in the table");
    }
  }
  uint64_t last = 0;
  for (const MemoryNote& note : device.notes) {
    if (static_cast<size_t>(note.kind) >= kNoteKinds || note.name >= trace.strings.size()) {
      return Wrong("a note has an unknown kind or text");
    }
    if (note.event < last || note.event > device.events.size()) {
      return Wrong("notes are not in the order of events");
    }
    last = note.event;
  }
  if (!device.has_final_state && !device.final_state.empty()) {
    return Wrong(StrCat("device ", device.device, " has segments but no final state"));
  }
  for (const SegmentInfo& segment : device.final_state) {
    bool ok = segment.stack < trace.stacks.size();
    for (const BlockInfo& block : segment.blocks) {
      ok = ok && block.stack < trace.stacks.size() && block.state <= BlockState::kInactive;
    }
    if (!ok) return Wrong("a segment or block refers to a stack not in the table");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckTrace(const Trace& trace) {
  for (size_t i = 1; i < trace.streams.size(); ++i) {
    if (!(trace.streams[i - 1] < trace.streams[i])) return Wrong("streams are not ascending");
  }
  if (trace.pools.empty() || !trace.pools[0].is_default()) {
    return Wrong("pool 0 is not the default pool");
  }
  if (trace.pools.size() > TraceBuilder::kMaxPools) return Wrong("there are over 65536 pools");
  absl::flat_hash_set<std::pair<uint64_t, uint64_t>> known;
  for (const PoolId& pool : trace.pools) {
    if (!known.insert({pool.first, pool.second}).second) return Wrong("a pool is listed twice");
  }
  for (size_t stack = 0; stack < trace.stacks.size(); ++stack) {
    for (const uint32_t frame : trace.stacks[stack]) {
      if (frame >= trace.stacks.frame_count()) return Wrong("a stack refers to an unknown frame");
    }
  }
  for (size_t i = 0; i < trace.stacks.frame_count(); ++i) {
    const Frame& frame = trace.stacks.frame(static_cast<uint32_t>(i));
    if (frame.filename >= trace.strings.size() || frame.name >= trace.strings.size()) {
      return Wrong("a frame refers to an unknown text");
    }
  }
  for (const Annotation& annotation : trace.annotations) {
    if (annotation.name >= trace.strings.size() || annotation.stage >= trace.strings.size()) {
      return Wrong("an annotation refers to an unknown text");
    }
  }
  const auto finite = [](const std::optional<double>& value) {
    return !value || std::isfinite(*value);
  };
  if (!finite(trace.memory_fraction) ||
      (trace.settings && !finite(trace.settings->garbage_collection_threshold))) {
    return Wrong("a setting is not a finite number");
  }
  for (size_t i = 0; i < trace.devices.size(); ++i) {
    if (trace.devices[i].device < 0 ||
        (i > 0 && trace.devices[i - 1].device >= trace.devices[i].device)) {
      return Wrong("devices are not ascending from 0");
    }
    RETURN_IF_ERROR(CheckDevice(trace, trace.devices[i]));
  }
  return absl::OkStatus();
}

}  // namespace memreplay

#include "tests/sim/support/made_recording.h"

#include <cmath>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "sim/device/simulated_device.h"
#include "sim/model/caching_allocator.h"
#include "sim/model/observer.h"
#include "sim/settings/torch_profile.h"

namespace memreplay::testing {
namespace {

// Keeps what PyTorch's trace would have.
class Recorder final : public Observer {
 public:
  Recorder(std::vector<Event>& events, bool pools) : events_(events), pools_(pools) {}
  void OnEvent(const Event& event) override {
    const bool recorded = IsTraced(event.kind);
    if (!recorded) return;
    Event entry = event;
    entry.id = kNoAllocation;
    entry.block_size = Bytes();
    if (!pools_) entry.pool = 0;
    events_.push_back(entry);
  }

 private:
  std::vector<Event>& events_;
  const bool pools_;
};

class Program {
 public:
  Program(const Made& made, Trace& trace)
      : made_(made),
        random_(made.seed),
        device_({.capacity = made.capacity, .explicit_completion = true}),
        allocator_(ProfileOf(made), made.config, device_, Options(trace)),
        trace_(trace),
        recorder_(trace.devices[0].events.kept(), made.event_pools) {}

  void RunRandom() {
    for (uint32_t i = 0; i < made_.requests; ++i) {
      ++stack_;
      if (!made_.changes.empty()) ChangeSettings(i);
      if (made_.pools > 0 && i >= made_.pools_from && i % 31 == 0) SwitchPool();
      const uint64_t dice = Below(100);
      // Phases of growth and of shrinking, so that segments become free.
      const uint64_t alloc_share = (i / 97) % 3 == 2 ? 25 : 55;
      if (dice < alloc_share || live_.empty()) {
        Alloc();
      } else if (dice < 96) {
        Free();
      } else if (dice < 98 && made_.late_frees) {
        Ask(EventKind::kStreamDone, kNoAllocation, Bytes(), SideStream());
      } else if (dice == 98 && made_.empty_caches) {
        Ask(EventKind::kEmptyCache, kNoAllocation, Bytes(), 0);
      } else if (dice == 99) {
        Snapshot();
      }
    }
    KeepFinalState();
  }

  void Run(const std::vector<Event>& requests) {
    for (const Event& request : requests) (void)allocator_.Apply(request, recorder_);
    KeepFinalState();
  }

 private:
  void KeepFinalState() {
    DeviceTrace& device = trace_.devices[0];
    device.has_final_state = true;
    device.final_state = allocator_.Segments();
    for (SegmentInfo& segment : device.final_state) {
      for (BlockInfo& block : segment.blocks) block.id = kNoAllocation;
    }
  }

  static CachingAllocatorOptions Options(const Trace& trace) {
    CachingAllocatorOptions options;
    options.streams = trace.streams;
    options.pools = trace.pools;
    return options;
  }

  uint64_t Below(uint64_t n) { return random_() % n; }
  uint32_t SideStream() { return made_.streams + static_cast<uint32_t>(Below(3)); }

  void Ask(EventKind kind, AllocationId id, Bytes size, uint32_t stream) {
    Event request;
    request.kind = kind;
    request.id = id;
    request.size = size;
    request.stream = stream;
    if (made_.stacks && !HasText(kind)) request.text_or_stack = stack_;
    (void)allocator_.Apply(request, recorder_);
  }

  void Alloc() {
    const double log = std::log2(static_cast<double>(made_.largest.value()));
    const double exponent = std::uniform_real_distribution<double>(0, log)(random_);
    auto size = static_cast<uint64_t>(std::exp2(exponent));
    // Often the same few sizes, as in training, and sizes at thresholds.
    if (Below(2) == 0 && !sizes_.empty()) size = sizes_[Below(sizes_.size())];
    if (Below(20) == 0) size = (uint64_t{1} << 20) * (1 + Below(12)) + Below(3) - 1;
    if (made_.few_sizes) size = (uint64_t{1} << 20) * (Below(3) == 0 ? 1 : 11 + 2 * Below(2));
    sizes_.push_back(size);
    live_.push_back(next_id_);
    Ask(EventKind::kAlloc, next_id_++, Bytes(size), static_cast<uint32_t>(Below(made_.streams)));
  }

  void Free() {
    const size_t i = Below(live_.size());
    const AllocationId id = live_[i];
    live_[i] = live_.back();
    live_.pop_back();
    if (made_.late_frees && Below(4) == 0) {
      for (uint64_t uses = 1 + Below(2); uses > 0; --uses) {
        Ask(EventKind::kRecordStream, id, Bytes(), SideStream());
      }
    }
    Ask(EventKind::kFree, id, Bytes(), 0);
  }

  void ChangeSettings(uint32_t request) {
    const auto distance = static_cast<uint32_t>(made_.requests / (made_.changes.size() + 1));
    if (request % distance != 0 || request / distance > made_.changes.size()) return;
    MemoryNote note;
    note.kind = NoteKind::kSettings;
    note.event = trace_.devices[0].events.size();
    if (request > 0) {
      const std::string& text = made_.changes[request / distance - 1];
      if (double share = 0; absl::SimpleAtod(text, &share)) {
        (void)allocator_.SetMemoryFraction(share);
        note.kind = NoteKind::kFraction;
        note.address = Address(made_.capacity.value());
        trace_.total_memory.reset();
      } else {
        (void)allocator_.ApplySettings(text);
      }
      note.name = trace_.strings.Intern(text);
    } else {
      note.name = trace_.strings.Intern(made_.config.conf);
    }
    trace_.devices[0].notes.push_back(note);
  }

  // Ends the pool that is being filled, or begins another.
  void SwitchPool() {
    if (filled_ != 0) {
      AskPool(EventKind::kPoolEnd, filled_);
      // As use_mem_pool does; the pool itself stays.
      AskPool(EventKind::kPoolRelease, filled_);
      filled_ = 0;
      return;
    }
    const auto pool = static_cast<uint16_t>(1 + Below(made_.pools));
    if (released_.contains(pool)) return;
    if (made_.release_pools && created_.contains(pool) && Below(3) == 0) {
      released_.insert(pool);
      AskPool(EventKind::kPoolRelease, pool);
      return;
    }
    if (created_.insert(pool).second) AskPool(EventKind::kPoolCreate, pool);
    filled_ = pool;
    AskPool(EventKind::kPoolBegin, pool);
  }

  void AskPool(EventKind kind, uint16_t pool) {
    Event request;
    request.kind = kind;
    request.pool = pool;
    (void)allocator_.Apply(request, recorder_);
  }

  void Snapshot() {
    Event event;
    event.kind = EventKind::kSnapshot;
    event.size = Bytes(static_cast<uint64_t>(allocator_.statistics().active_bytes.all.current()));
    recorder_.OnEvent(event);
  }

  const Made& made_;
  std::mt19937_64 random_;
  SimulatedDevice device_;
  CachingAllocator allocator_;
  Trace& trace_;
  Recorder recorder_;
  uint32_t stack_ = 0;
  AllocationId next_id_ = 0;
  std::vector<AllocationId> live_;
  std::vector<uint64_t> sizes_;
  uint16_t filled_ = 0;
  std::set<uint16_t> created_;
  std::set<uint16_t> released_;
};

}  // namespace

LayoutFacts LayoutOf(const TorchProfile& profile) {
  LayoutFacts facts;
  const SnapshotLayout& layout = profile.snapshot;
  facts.has_device_traces = true;
  facts.has_allocator_settings = layout.allocator_settings;
  facts.has_external_annotations = layout.external_annotations;
  facts.has_time_us = layout.time_us;
  facts.has_compile_context = layout.compile_context;
  facts.has_user_metadata = layout.user_metadata;
  facts.has_event_pool_id = layout.pool_id;
  facts.has_block_history = layout.block_history;
  facts.has_block_addresses = layout.block_addresses;
  facts.has_is_expandable = layout.is_expandable;
  facts.has_graph_capture_record_stream_reuse = layout.graph_capture_record_stream_reuse;
  return facts;
}

const TorchProfile& ProfileOf(const Made& made) {
  if (made.torch.empty()) return DefaultTorchProfile();
  return **FindTorchProfile(made.torch);
}

namespace {

Trace EmptyRecording(const Made& made) {
  Trace trace;
  trace.format = "made";
  trace.devices.resize(1);
  trace.streams.clear();
  for (uint32_t i = 0; i < made.streams; ++i) trace.streams.emplace_back(i * 0x1000);
  for (uint64_t i = 1; i <= made.pools; ++i) trace.pools.push_back({0, i});
  trace.layout.has_event_pool_id = made.event_pools;
  trace.total_memory = made.capacity;
  RecordedSettings& settings = trace.settings.emplace();
  settings.garbage_collection_threshold = made.config.garbage_collection_threshold;
  settings.max_split_size =
      made.config.max_split_size == kUnlimited ? -1 : made.config.max_split_size.signed_value();
  return trace;
}

}  // namespace

Trace MakeRecording(const Made& made) {
  Trace trace = EmptyRecording(made);
  Program(made, trace).RunRandom();
  return trace;
}

Trace RecordingOf(const std::vector<Event>& requests, const Made& made) {
  Trace trace = EmptyRecording(made);
  Program(made, trace).Run(requests);
  return trace;
}

std::shared_ptr<Trace> WithoutGonePools(const Made& made) {
  auto trace = std::make_shared<Trace>(MakeRecording(made));
  const MemoryState& end = trace->devices[0].final_state;
  std::erase_if(trace->pools, [&end](PoolId pool) {
    return pool != PoolId{} && std::none_of(end.begin(), end.end(), [pool](const SegmentInfo& s) {
             return s.pool_id == pool;
           });
  });
  return trace;
}

std::shared_ptr<const Trace> WithoutHead(const Made& made, size_t events) {
  auto trace = std::make_shared<Trace>(MakeRecording(made));
  std::vector<Event>& all = trace->devices[0].events.kept();
  all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(events, all.size())));
  for (MemoryNote& note : trace->devices[0].notes)
    note.event -= std::min<uint64_t>(note.event, events);
  return trace;
}

}  // namespace memreplay::testing

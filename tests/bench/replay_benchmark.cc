// Measures how many operations per second the simulator replays, how many a plain best-fit model
// replays on the same operations, and the ratio of the two.
//
//   MEMREPLAY_OP_LOG=file   what to replay: any file that OpenTrace() reads and
//                           that holds only allocations and frees ("id size"
//                           and "id -size" lines, for one); without it a
//                           built-in synthetic program of about 640,000
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "sim/device/simulated_device.h"
#include "sim/model/caching_allocator.h"
#include "sim/observe/usage.h"
#include "sim/run/run.h"
#include "sim/settings/torch_profile.h"
#include "tests/bench/synthetic_log.h"
#include "trace/formats/open_trace.h"
#include "trace/schedule/schedule.h"

namespace memreplay {
namespace {

const Schedule& Operations() {
  static const Schedule& operations = *[] {
    const char* path = std::getenv("MEMREPLAY_OP_LOG");
    absl::StatusOr<Trace> trace = path == nullptr ? SyntheticLog(340) : OpenTrace(path);
    if (!trace.ok() || trace->devices.empty()) {
      std::fprintf(stderr, "%s\n", trace.status().ToString().c_str());
      std::exit(2);
    }
    return new Schedule(Schedule::Build(std::make_shared<const Trace>(*std::move(trace)), 0));
  }();
  return operations;
}

class NullObserver final : public Observer {
 public:
  void OnEvent(const Event&) override {}
};

void Replay(benchmark::State& state, const AllocatorConfig& config, bool with_usage) {
  const Schedule& operations = Operations();
  UsageObserver usage;
  for (auto _ : state) {
    state.PauseTiming();
    SimulatedDevice device{SimulatedDevice::Options{}};
    CachingAllocatorOptions options;
    options.streams = operations.trace().streams;
    options.allocation_count = operations.allocation_count();
    auto allocator =
        std::make_unique<CachingAllocator>(DefaultTorchProfile(), config, device, options);
    usage = UsageObserver();
    NullObserver nobody;
    state.ResumeTiming();
    const RunResult result =
        with_usage ? Run(operations, *allocator, usage) : Run(operations, *allocator, nobody);
    state.PauseTiming();
    if (!result.failures.empty()) state.SkipWithError("an operation failed");
    allocator.reset();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * operations.requests().size()));
  state.counters["peak_allocated"] = static_cast<double>(usage.peak().allocated().value());
  state.counters["peak_reserved"] = static_cast<double>(usage.peak().reserved().value());
}

void BM_Replay(benchmark::State& state) { Replay(state, {}, /*with_usage=*/true); }
void BM_ReplayUnobserved(benchmark::State& state) { Replay(state, {}, /*with_usage=*/false); }
void BM_ReplayExpandable(benchmark::State& state) {
  AllocatorConfig config;
  config.expandable_segments = true;
  Replay(state, config, /*with_usage=*/true);
}

// A minimal allocator that still answers with addresses: two std::set ordered by size, doubly
// linked blocks, split and merge. It has no statistics, no events, and no settings.
class PlainBestFit {
 public:
  explicit PlainBestFit(size_t ids) : live_(ids) {}
  ~PlainBestFit() {
    for (Block* block : all_) delete block;
  }
  PlainBestFit(const PlainBestFit&) = delete;
  PlainBestFit& operator=(const PlainBestFit&) = delete;

  void Alloc(AllocationId id, uint64_t requested) {
    const uint64_t size = std::max<uint64_t>(512, (requested + 511) / 512 * 512);
    const bool small = size <= 1 << 20;
    FreeSet& free = small ? small_ : large_;
    Block key;
    key.size = size;
    Block* block;
    if (const auto it = free.lower_bound(&key); it != free.end()) {
      block = *it;
      free.erase(it);
    } else {
      block = New();
      block->size = small               ? 2 << 20
                    : size < (10 << 20) ? 20 << 20
                                        : (size + (2 << 20) - 1) / (2 << 20) * (2 << 20);
      block->address = top_;
      block->small = small;
      top_ += block->size;
      reserved_ += block->size;
    }
    const uint64_t rest = block->size - size;
    if (small ? rest >= 512 : rest > 1 << 20) {
      Block* front = New();
      front->address = block->address;
      front->size = size;
      front->small = small;
      front->previous = block->previous;
      front->next = block;
      if (front->previous != nullptr) front->previous->next = front;
      block->previous = front;
      block->address += size;
      block->size -= size;
      free.insert(block);
      block = front;
    }
    block->used = true;
    live_[id] = block;
    allocated_ += block->size;
    peak_allocated_ = std::max(peak_allocated_, allocated_);
  }

  void Free(AllocationId id) {
    Block* block = live_[id];
    FreeSet& free = block->small ? small_ : large_;
    block->used = false;
    allocated_ -= block->size;
    if (Block* before = block->previous; before != nullptr && !before->used) {
      free.erase(before);
      block->address = before->address;
      block->size += before->size;
      block->previous = before->previous;
      if (block->previous != nullptr) block->previous->next = block;
      Recycle(before);
    }
    if (Block* after = block->next; after != nullptr && !after->used) {
      free.erase(after);
      block->size += after->size;
      block->next = after->next;
      if (block->next != nullptr) block->next->previous = block;
      Recycle(after);
    }
    free.insert(block);
  }

  uint64_t peak_allocated() const { return peak_allocated_; }
  uint64_t reserved() const { return reserved_; }

 private:
  struct Block {
    uint64_t address = 0;
    uint64_t size = 0;
    Block* previous = nullptr;
    Block* next = nullptr;
    bool used = false;
    bool small = false;
  };
  struct BySize {
    bool operator()(const Block* a, const Block* b) const {
      return a->size != b->size ? a->size < b->size : a->address < b->address;
    }
  };
  using FreeSet = std::set<Block*, BySize>;

  Block* New() {
    if (!spare_.empty()) {
      Block* block = spare_.back();
      spare_.pop_back();
      *block = Block();
      return block;
    }
    all_.push_back(new Block);
    return all_.back();
  }
  void Recycle(Block* block) { spare_.push_back(block); }

  FreeSet small_, large_;
  std::vector<Block*> live_, all_, spare_;
  uint64_t top_ = 0x7f0000000000;
  uint64_t reserved_ = 0, allocated_ = 0, peak_allocated_ = 0;
};

void BM_PlainBestFit(benchmark::State& state) {
  const Schedule& operations = Operations();
  uint64_t allocated = 0, reserved = 0;
  for (auto _ : state) {
    state.PauseTiming();
    auto model = std::make_unique<PlainBestFit>(operations.allocation_count());
    state.ResumeTiming();
    for (const Event& request : operations.requests()) {
      if (request.kind == EventKind::kAlloc) {
        model->Alloc(request.id, request.size.value());
      } else {
        model->Free(request.id);
      }
    }
    state.PauseTiming();
    allocated = model->peak_allocated();
    reserved = model->reserved();
    model.reset();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * operations.requests().size()));
  state.counters["peak_allocated"] = static_cast<double>(allocated);
  state.counters["peak_reserved"] = static_cast<double>(reserved);
}

BENCHMARK(BM_Replay)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_PlainBestFit)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_ReplayUnobserved)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_ReplayExpandable)->Unit(benchmark::kMillisecond);

// Keeps the best rate of each benchmark, to divide them at the end.
class RatioReporter final : public benchmark::ConsoleReporter {
 public:
  RatioReporter() : ConsoleReporter(OO_Tabular) {}
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      const auto rate = run.counters.find("items_per_second");
      if (run.error_occurred || run.run_type != Run::RT_Iteration || rate == run.counters.end()) {
        continue;
      }
      double& best = best_[run.run_name.function_name];
      best = std::max(best, static_cast<double>(rate->second));
    }
    ConsoleReporter::ReportRuns(runs);
  }
  double Best(const std::string& name) const {
    const auto it = best_.find(name);
    return it == best_.end() ? 0 : it->second;
  }

 private:
  std::map<std::string, double> best_;
};

}  // namespace
}  // namespace memreplay

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  std::printf("%zu operations\n", memreplay::Operations().requests().size());
  memreplay::RatioReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  const double replay = reporter.Best("BM_Replay");
  const double plain = reporter.Best("BM_PlainBestFit");
  if (replay > 0 && plain > 0) {
    std::printf("replay %.2f M ops/s, plain best fit %.2f M ops/s, ratio %.2f (best of each)\n",
                replay / 1e6, plain / 1e6, replay / plain);
  }
  return 0;
}

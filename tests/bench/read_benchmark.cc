// Measures how fast a snapshot is read, and how much memory that takes beyond the mapped file. Its
// argument is a file:
//   bazel run -c opt //tests/bench:read_benchmark -- FILE [benchmark flags]
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "trace/formats/open_trace.h"

namespace memreplay {
namespace {

// Returns a line of /proc/self/status, in bytes, or 0 if there is none such.
double StatusBytes(const char* key) {
  double kib = 0;
  std::FILE* file = std::fopen("/proc/self/status", "r");
  if (file == nullptr) return 0;
  char line[256];
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::strncmp(line, key, std::strlen(key)) == 0) {
      std::sscanf(line + std::strlen(key), ": %lf", &kib);
    }
  }
  std::fclose(file);
  return kib * 1024;
}

void BM_OpenTrace(benchmark::State& state, const std::string& path) {
  size_t events = 0;
  for (auto _ : state) {
    const absl::StatusOr<Trace> trace = OpenTrace(path);
    if (!trace.ok()) return state.SkipWithError(trace.status().ToString().c_str());
    events = 0;
    for (const DeviceTrace& device : trace->devices) events += device.events.size();
    state.counters["anon_bytes"] = StatusBytes("RssAnon");
    state.counters["strings"] = static_cast<double>(trace->strings.size());
    state.counters["stacks"] = static_cast<double>(trace->stacks.size());
  }
  state.counters["events"] = static_cast<double>(events);
  state.counters["events_per_s"] = benchmark::Counter(
      static_cast<double>(events), benchmark::Counter::kIsIterationInvariantRate);
}

}  // namespace
}  // namespace memreplay

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (argc < 2) {
    std::fprintf(stderr, "usage: read_benchmark FILE...\n");
    return 2;
  }
  for (int i = 1; i < argc; ++i) {
    const std::string path = argv[i];
    benchmark::RegisterBenchmark(path.c_str(), [path](benchmark::State& state) {
      memreplay::BM_OpenTrace(state, path);
    })->Unit(benchmark::kMillisecond);
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

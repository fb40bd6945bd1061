// Compares what is inferred about each allocation with what Python noted: precision and recall by
// category, in bytes allocated. For files without notes, prints the table of what is inferred.
//
//   bazel run -c opt //tests/sim/category:compare -- FILE...
#include <array>
#include <cstdio>
#include <memory>
#include <string>

#include "sim/category/category_table.h"
#include "sim/category/meanings.h"
#include "trace/formats/open_trace.h"
#include "trace/schedule/schedule.h"

namespace memreplay {
namespace {

double Mib(uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

struct Counts {
  uint64_t told[kCategories] = {}, inferred[kCategories] = {}, both[kCategories] = {};
  uint64_t matrix[kCategories][kCategories] = {};
  int shown = 40;  // differences with their frames
  uint64_t phase_told[kPhases] = {}, phase_inferred[kPhases] = {}, phase_both[kPhases] = {};
};

void PrintTable(const CategoryTable& table) {
  std::printf("  %-12s %10s", "peak of", "MiB");
  for (size_t c = 0; c < kCategories; ++c) {
    std::printf(" %9.9s", std::string(CategoryName(static_cast<Category>(c))).c_str());
  }
  std::printf("\n");
  for (const CategoryPeak& peak : table.phases) {
    std::printf("  %-10s %u %10.1f", std::string(PhaseName(peak.phase)).c_str(), peak.step,
                Mib(peak.live.value()));
    for (const Bytes bytes : peak.bytes) std::printf(" %9.1f", Mib(bytes.value()));
    std::printf("\n");
  }
  std::printf("  known by");
  for (size_t e = 0; e < kEvidences; ++e) {
    std::printf(" %s %.1f", std::string(EvidenceName(static_cast<Evidence>(e))).c_str(),
                Mib(table.evidence[e].value()));
  }
  std::printf("\n");
}

int Main(int argc, char** argv) {
  Counts counts;
  for (int i = 1; i < argc; ++i) {
    absl::StatusOr<Trace> read = OpenTrace(argv[i]);
    if (!read.ok()) {
      std::printf("%s\n", std::string(read.status().message()).c_str());
      return 2;
    }
    const auto trace = std::make_shared<const Trace>(*std::move(read));
    for (size_t d = 0; d < trace->devices.size(); ++d) {
      const Schedule schedule = Schedule::Build(trace, d);
      const Meanings inferred = FindMeanings(schedule, false);
      std::printf("%s: device %d, %zu notes, %zu allocations, %zu spans\n", argv[i],
                  schedule.device(), schedule.device_trace().notes.size(), inferred.of.size(),
                  inferred.phases.size());
      PrintTable(CategoriesOverTime(schedule, inferred));
      if (schedule.device_trace().notes.empty()) continue;
      const Meanings told = FindMeanings(schedule, true);
      const CategoryTable table = CategoriesOverTime(schedule, told);
      PrintTable(table);
      std::vector<Bytes> sizes(told.of.size());
      std::vector<uint32_t> stacks(told.of.size());
      for (const StartAllocation& start : schedule.start_allocations()) {
        sizes[start.id] = start.requested_size;
      }
      for (const Event& event : schedule.recorded()) {
        if (event.kind == EventKind::kAlloc && event.id < sizes.size()) {
          sizes[event.id] = event.size;
          stacks[event.id] = event.text_or_stack;
        }
      }
      for (size_t id = 0; id < sizes.size(); ++id) {
        const auto a = static_cast<size_t>(told.of[id].category);
        const auto b = static_cast<size_t>(inferred.of[id].category);
        const uint64_t size = sizes[id].value();
        counts.told[a] += size;
        counts.inferred[b] += size;
        counts.matrix[a][b] += size;
        if (a == b) {
          counts.both[a] += size;
        } else if (size > (1 << 19) && --counts.shown > 0) {
          std::printf("    %s, inferred %s by %s, of %.1f MiB in %s:",
                      std::string(CategoryName(told.of[id].category)).c_str(),
                      std::string(CategoryName(inferred.of[id].category)).c_str(),
                      std::string(EvidenceName(inferred.of[id].evidence)).c_str(), Mib(size),
                      std::string(PhaseName(inferred.of[id].phase)).c_str());
          for (size_t f = 0; f < trace->stacks[stacks[id]].size() && f < 5; ++f) {
            const Frame& frame = trace->stacks.frame(trace->stacks[stacks[id]][f]);
            std::printf(" %s", std::string(trace->strings[frame.name]).c_str());
          }
          std::printf("\n");
        }
        const auto p = static_cast<size_t>(told.of[id].phase);
        const auto q = static_cast<size_t>(inferred.of[id].phase);
        counts.phase_told[p] += size;
        counts.phase_inferred[q] += size;
        if (p == q) counts.phase_both[p] += size;
      }
    }
  }
  const auto share = [](uint64_t part, uint64_t of) {
    return of == 0 ? std::string("-") : std::to_string((part * 1000 / of + 5) / 10) + " %";
  };
  std::printf(
      "\n| category | told, MiB | inferred, MiB | precision | recall |\n|---|---|---|---|---|\n");
  for (size_t c = 0; c < kCategories; ++c) {
    if (counts.told[c] == 0 && counts.inferred[c] == 0) continue;
    std::printf("| %s | %.1f | %.1f | %s | %s |\n",
                std::string(CategoryName(static_cast<Category>(c))).c_str(), Mib(counts.told[c]),
                Mib(counts.inferred[c]), share(counts.both[c], counts.inferred[c]).c_str(),
                share(counts.both[c], counts.told[c]).c_str());
  }
  std::printf(
      "\n| phase | told, MiB | inferred, MiB | precision | recall |\n|---|---|---|---|---|\n");
  for (size_t p = 0; p < kPhases; ++p) {
    if (counts.phase_told[p] == 0 && counts.phase_inferred[p] == 0) continue;
    std::printf("| %s | %.1f | %.1f | %s | %s |\n",
                std::string(PhaseName(static_cast<Phase>(p))).c_str(), Mib(counts.phase_told[p]),
                Mib(counts.phase_inferred[p]),
                share(counts.phase_both[p], counts.phase_inferred[p]).c_str(),
                share(counts.phase_both[p], counts.phase_told[p]).c_str());
  }
  std::printf("\ntold \\ inferred, MiB\n");
  for (size_t a = 0; a < kCategories; ++a) {
    for (size_t b = 0; b < kCategories; ++b) {
      if (a != b && counts.matrix[a][b] > (1 << 19)) {
        std::printf("  %-16s as %-16s %10.1f\n",
                    std::string(CategoryName(static_cast<Category>(a))).c_str(),
                    std::string(CategoryName(static_cast<Category>(b))).c_str(),
                    Mib(counts.matrix[a][b]));
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace memreplay

int main(int argc, char** argv) { return memreplay::Main(argc, argv); }

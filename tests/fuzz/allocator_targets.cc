#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <utility>
#include <vector>

#include "sim/settings/allocator_config.h"
#include "tests/fuzz/targets.h"
#include "tests/sim/support/program_runner.h"

namespace memreplay::fuzz {
namespace {

// Reads bytes as requests: a header of five, then five bytes a step.
memreplay::Program ProgramOf(std::string_view bytes, const TorchProfile& profile) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  constexpr const char* kConfs[] = {"",
                                    "expandable_segments:True",
                                    "max_split_size_mb:21",
                                    "max_split_size_mb:40",
                                    "garbage_collection_threshold:0.5",
                                    "roundup_power2_divisions:4",
                                    "roundup_power2_divisions:[1:4,2:8,>:2]",
                                    "garbage_collection_threshold:0.8,max_split_size_mb:64"};
  constexpr uint64_t kTotals[] = {60, 100, 256, 1024, 81920};
  memreplay::Program program;
  program.conf = kConfs[byte(1) % std::size(kConfs)];
  AllocatorConfig config;
  if (!ParseAllocatorConf(program.conf, profile, &config).ok()) program.conf = "";
  program.total = MiB(kTotals[byte(2) % std::size(kTotals)]);
  program.explicit_completion = (byte(3) & 1) != 0;
  if ((byte(3) & 2) != 0) program.fraction = 0.5;
  std::vector<uint64_t> live;
  for (size_t at = 5; at + 5 <= bytes.size() && program.steps.size() < 2000; at += 5) {
    const uint8_t verb = byte(at);
    Step step;
    step.stream = byte(at + 1) % kProgramStreams;
    const uint64_t number = byte(at + 2) | uint64_t{byte(at + 3)} << 8;
    if (verb < 110 || live.empty()) {
      step.kind = EventKind::kAlloc;
      step.handle = program.steps.size() + 1;
      step.size = std::max<uint64_t>(1, number << (byte(at + 4) % 14));
      live.push_back(step.handle);
    } else if (verb < 200) {
      step.kind = EventKind::kFree;
      const size_t index = number % live.size();
      step.handle = live[index];
      live.erase(live.begin() + static_cast<ptrdiff_t>(index));
    } else if (verb < 215) {
      step.kind = EventKind::kRecordStream;
      step.handle = live[number % live.size()];
    } else if (verb < 222) {
      step.kind = EventKind::kStreamDone;
    } else if (verb < 228) {
      step.kind = EventKind::kEmptyCache;
    } else if (verb < 232) {
      step.kind = EventKind::kFailNext;
      step.size = number % 4;
    } else if (verb < 236) {
      step.kind = EventKind::kResetPeak;
    } else if (verb < 240) {
      step.kind = EventKind::kSettings;
      step.text = kConfs[number % std::size(kConfs)];
      AllocatorConfig changed;
      if (!ParseAllocatorConf(step.text, profile, &changed).ok()) continue;
    } else {
      constexpr EventKind kPoolSteps[] = {EventKind::kPoolCreate, EventKind::kPoolBegin,
                                          EventKind::kPoolEnd, EventKind::kPoolRelease};
      step.kind = kPoolSteps[(verb - 240) % std::size(kPoolSteps)];
      step.pool = static_cast<uint16_t>(1 + number % (kProgramPools.size() - 1));
      if (step.kind == EventKind::kPoolCreate) step.size = byte(at + 4) % 4;
    }
    program.steps.push_back(std::move(step));
  }
  return program;
}

// Runs them under one release, which the first byte chooses, with every check after every step.
void Requests(std::string_view bytes) {
  if (bytes.size() < 5) return;
  const absl::Span<const TorchProfile> profiles = AllTorchProfiles();
  const TorchProfile& profile = profiles[static_cast<uint8_t>(bytes[0]) % profiles.size()];
  const memreplay::Program program = ProgramOf(bytes, profile);
  const ProgramOutcome outcome = RunAnyProgram(program, profile);
  if (outcome.failure.empty()) return;
  std::fprintf(stderr, "%s, torch %s\n%s", outcome.failure.c_str(),
               std::string(profile.release).c_str(), ProgramText(program).c_str());
  std::abort();
}

constexpr Target kTargets[] = {
    {"requests", Requests},
};

}  // namespace

absl::Span<const Target> AllocatorTargets() { return kTargets; }

std::string RequestsText(std::string_view bytes, const TorchProfile& profile) {
  return bytes.size() < 5 ? "" : ProgramText(ProgramOf(bytes, profile));
}

}  // namespace memreplay::fuzz

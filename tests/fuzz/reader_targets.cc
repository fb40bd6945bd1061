#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "sim/settings/allocator_config.h"
#include "sim/settings/conf_lint.h"
#include "tests/fuzz/targets.h"
#include "trace/bytes/byte_source.h"
#include "trace/formats/flat/flat_jsonl.h"
#include "trace/formats/op_log/op_log_reader.h"
#include "trace/formats/protobuf/protobuf_format.h"
#include "trace/formats/torch/torch_snapshot.h"
#include "trace/program/program_reader.h"
#include "trace/schedule/schedule.h"

namespace memreplay::fuzz {
namespace {

constexpr uint64_t kMaxEvents = 20'000;

std::unique_ptr<ByteSource> Source(std::string_view bytes) {
  ByteSource::Limits limits;
  limits.max_bytes = uint64_t{16} << 20;
  auto source = ByteSource::FromBytes(std::string(bytes), limits);
  return source.ok() ? *std::move(source) : nullptr;
}

// A trace that was read becomes schedules, which check it once more.
void Take(absl::StatusOr<Trace> trace) {
  if (!trace.ok()) {
    if (trace.status().message().empty()) std::abort();  // an error that says nothing
    return;
  }
  auto shared = std::make_shared<const Trace>(*std::move(trace));
  for (size_t device = 0; device < shared->devices.size() && device < 8; ++device) {
    (void)Schedule::Build(shared, device);
  }
}

template <absl::StatusOr<Trace> (*read)(ByteSource&, const std::string&)>
void Named(std::string_view bytes) {
  if (const auto source = Source(bytes)) Take(read(*source, "f"));
}

template <absl::StatusOr<Trace> (*read)(ByteSource&)>
void Plain(std::string_view bytes) {
  if (const auto source = Source(bytes)) Take(read(*source));
}

void ScheduleProgram(std::string_view bytes) {
  const auto source = Source(bytes);
  if (source == nullptr) return;
  program::CompileOptions options;
  options.max_events = kMaxEvents;
  const absl::StatusOr<program::ProgramCode> code = program::ReadProgramCode(*source, options);
  if (!code.ok()) return;
  absl::StatusOr<Trace> kept = program::ExpandProgram(*code);
  const absl::StatusOr<Trace> again = program::ExpandProgram(*code, 0);
  if (kept.ok() != again.ok()) std::abort();
  if (kept.ok()) {
    const EventList& events = kept->devices[0].events;
    if (!std::equal(events.begin(), events.end(), again->devices[0].events.begin(),
                    again->devices[0].events.end())) {
      std::abort();
    }
  }
  Take(std::move(kept));
}

// The first byte chooses the release.
void Settings(std::string_view bytes) {
  if (bytes.empty()) return;
  const absl::Span<const TorchProfile> profiles = AllTorchProfiles();
  const TorchProfile& profile = profiles[static_cast<uint8_t>(bytes[0]) % profiles.size()];
  AllocatorConfig config;
  std::vector<std::string> warnings;
  (void)ParseAllocatorConf(bytes.substr(1), profile, &config, &warnings);
  (void)ParseAllocatorConf(bytes.substr(1), profile, &config, &warnings);
  (void)LintAllocatorConf(bytes.substr(1), profile);
}

// One thread and two read the same. A page has a pickle in it.
void Pickle(std::string_view bytes) {
  if (IsSnapshotPage(bytes.substr(0, 4096))) return Named<ReadSnapshotPage>(bytes);
  constexpr size_t kShare = 1000;  // some ten rows
  const std::unique_ptr<ByteSource> source = Source(bytes), again = Source(bytes);
  if (source == nullptr || again == nullptr) return;
  const absl::StatusOr<Trace> alone = ReadSnapshotPickle(*source, "f", 0);
  absl::StatusOr<Trace> shared = ReadSnapshotPickle(*again, "f", kShare);
  if (alone.status() != shared.status()) std::abort();
  if (alone.ok()) {
    if (alone->streams != shared->streams || alone->devices.size() != shared->devices.size()) {
      std::abort();
    }
    for (size_t i = 0; i < alone->devices.size(); ++i) {
      const DeviceTrace& a = alone->devices[i];
      const DeviceTrace& b = shared->devices[i];
      if (a.time_us != b.time_us ||
          !std::equal(a.events.begin(), a.events.end(), b.events.begin(), b.events.end())) {
        std::abort();
      }
    }
  }
  Take(std::move(shared));
}

constexpr Target kTargets[] = {
    {"pickle", Pickle},
    {"snapshot_json", Named<ReadSnapshotJson>},
    {"flat_jsonl", Plain<ReadFlatJsonl>},
    {"op_log", Plain<ReadOpLog>},
    {"protobuf", Plain<ReadProtobufTrace>},
    {"program", ScheduleProgram},
    {"settings", Settings},
};

}  // namespace

absl::Span<const Target> ReaderTargets() { return kTargets; }

}  // namespace memreplay::fuzz

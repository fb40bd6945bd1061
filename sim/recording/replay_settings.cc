#include "sim/recording/replay_settings.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/types/span.h"
#include "sim/settings/conf_lint.h"
#include "sim/settings/conf_tokens.h"
#include "trace/schedule/settings_changes.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// Returns a sentence about the changes on the device with most of them; "" if there are none.
std::string DescribeChanges(const Trace& trace, const TorchProfile& profile) {
  const std::vector<uint32_t> start = SettingsAtStart(trace);
  std::vector<SettingsChange> changes;
  for (const DeviceTrace& device : trace.devices) {
    std::vector<SettingsChange> own = SettingsChanges(device, start);
    if (own.size() > changes.size()) changes = std::move(own);
  }
  if (changes.empty()) return "";
  std::string text = StrCat("the script changed the allocator's settings ", changes.size(),
                            changes.size() == 1 ? " time" : " times");
  constexpr size_t kShown = 4;
  for (size_t i = 0; i < std::min(changes.size(), kShown); ++i) {
    const std::string_view conf = trace.strings[changes[i].text];
    StrAppend(&text, i == 0 ? ": " : ", ", "at event ", changes[i].event, " to ");
    if (changes[i].kind == EventKind::kFraction) {
      StrAppend(&text, "a memory fraction of ", conf);
      continue;
    }
    StrAppend(&text, conf.empty() ? "the defaults" : conf);
    AllocatorConfig ignored;
    if (!ParseAllocatorConf(conf, profile, &ignored).ok()) {
      StrAppend(&text, " (which PyTorch ", profile.release, " rejects)");
    }
  }
  if (changes.size() > kShown) StrAppend(&text, " and so on");
  return text;
}

// Returns whether the script made a MemPool that serves other requests when memory runs out.
bool HasPoolForOom(const Trace& trace) {
  return std::any_of(trace.devices.begin(), trace.devices.end(), [&](const DeviceTrace& device) {
    return std::any_of(device.notes.begin(), device.notes.end(), [&](const MemoryNote& note) {
      return note.kind == NoteKind::kPool &&
             trace.strings[note.name].find(kUseOnOomOption) != std::string_view::npos;
    });
  });
}

// Applies the settings that the file lists to `config`.
void ApplyRecordedSettings(const RecordedSettings& recorded, AllocatorConfig* config) {
  if (recorded.max_split_size.has_value()) {
    config->max_split_size = *recorded.max_split_size < 0
                                 ? kUnlimited
                                 : Bytes(static_cast<uint64_t>(*recorded.max_split_size));
  }
  if (recorded.garbage_collection_threshold.has_value()) {
    config->garbage_collection_threshold = *recorded.garbage_collection_threshold;
  }
  if (recorded.expandable_segments.has_value()) {
    config->expandable_segments = *recorded.expandable_segments;
  }
  if (recorded.graph_capture_record_stream_reuse.has_value()) {
    config->graph_capture_record_stream_reuse = *recorded.graph_capture_record_stream_reuse;
  }
  for (const auto& [megabytes, divisions] : recorded.roundup_power2_divisions) {
    if (!std::has_single_bit(megabytes)) continue;
    const auto index = static_cast<size_t>(std::bit_width(megabytes) - 1);
    if (index < config->roundup_power2_divisions.size()) {
      config->roundup_power2_divisions[index] = divisions;
    }
  }
}

// Returns the config under which the file was recorded, or that a written schedule's header sets.
absl::StatusOr<AllocatorConfig> RecordedConfig(const Trace& trace, const TorchProfile& profile,
                                               std::vector<std::string>* notes) {
  AllocatorConfig config;
  if (const std::vector<uint32_t> start = SettingsAtStart(trace); !start.empty()) {
    for (const uint32_t text : start) {
      // Of a text that PyTorch rejects it applies the beginning, too.
      ParseAllocatorConf(trace.strings[text], profile, &config, notes).IgnoreError();
    }
    return config;
  }
  const std::string conf = trace.settings.has_value() ? trace.settings->conf : "";
  const absl::Status parsed = ParseAllocatorConf(conf, profile, &config, notes);
  if (!parsed.ok()) {
    const std::string refusal = StrCat("PyTorch ", profile.release, " rejects the settings '", conf,
                                       "': ", ToStd(parsed.message()));
    if (trace.is_program) return absl::InvalidArgumentError(refusal);
    notes->push_back(StrCat(refusal, "; the values that the snapshot lists are used"));
  }
  if (!trace.is_program && trace.settings.has_value()) {
    ApplyRecordedSettings(*trace.settings, &config);
  }
  return config;
}

absl::StatusOr<AllocatorConfig> GivenConfig(const std::string& conf, const TorchProfile& profile,
                                            std::vector<std::string>* notes) {
  AllocatorConfig config;
  const absl::Status parsed = ParseAllocatorConf(conf, profile, &config, notes);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(StrCat("--conf: PyTorch ", profile.release, " rejects '",
                                             conf, "': ", ToStd(parsed.message()),
                                             ConfHint(conf, profile)));
  }
  return config;
}

// The place of a key; a file without that place cannot show the key.
enum class KeyPlace { kBlock, kSegment, kTopLevel, kSettings, kEvent };

bool HasPlace(const Trace& trace, KeyPlace place) {
  switch (place) {
    case KeyPlace::kBlock:
      return trace.layout.has_block_addresses || trace.layout.has_block_history;
    case KeyPlace::kSegment: return trace.layout.has_block_addresses;
    case KeyPlace::kTopLevel: return trace.layout.has_device_traces;
    case KeyPlace::kSettings: return trace.layout.has_allocator_settings;
    case KeyPlace::kEvent:
      return std::any_of(trace.devices.begin(), trace.devices.end(),
                         [](const DeviceTrace& device) { return !device.events.empty(); });
  }
  return false;
}

struct LayoutKey {
  std::string_view name;
  bool SnapshotLayout::*in_release;
  bool LayoutFacts::*in_file;
  KeyPlace place;
};

constexpr LayoutKey kKeys[] = {
    {"block history", &SnapshotLayout::block_history, &LayoutFacts::has_block_history,
     KeyPlace::kBlock},
    {"block addresses", &SnapshotLayout::block_addresses, &LayoutFacts::has_block_addresses,
     KeyPlace::kBlock},
    {"is_expandable", &SnapshotLayout::is_expandable, &LayoutFacts::has_is_expandable,
     KeyPlace::kSegment},
    {"time_us", &SnapshotLayout::time_us, &LayoutFacts::has_time_us, KeyPlace::kEvent},
    {"allocator_settings", &SnapshotLayout::allocator_settings,
     &LayoutFacts::has_allocator_settings, KeyPlace::kTopLevel},
    {"external_annotations", &SnapshotLayout::external_annotations,
     &LayoutFacts::has_external_annotations, KeyPlace::kTopLevel},
    {"compile_context", &SnapshotLayout::compile_context, &LayoutFacts::has_compile_context,
     KeyPlace::kEvent},
    {"graph_capture_record_stream_reuse", &SnapshotLayout::graph_capture_record_stream_reuse,
     &LayoutFacts::has_graph_capture_record_stream_reuse, KeyPlace::kSettings},
    {"user_metadata", &SnapshotLayout::user_metadata, &LayoutFacts::has_user_metadata,
     KeyPlace::kEvent},
    {"pool_id of events", &SnapshotLayout::pool_id, &LayoutFacts::has_event_pool_id,
     KeyPlace::kEvent},
};

bool KnowsSettings(const TorchProfile& profile, const Trace& trace) {
  if (!trace.settings.has_value()) return true;
  for (const std::string& token : ConfTokens(trace.settings->conf, profile.conf_shared_parser)) {
    const std::optional<ConfKey> key = FindConfKey(token);
    if (key && !profile.conf_keys.Has(*key)) return false;
  }
  return true;
}

// Returns whether the file has a key that the release does not write.
bool HasMore(const LayoutKey& key, const TorchProfile& profile, const Trace& trace) {
  return trace.layout.*key.in_file && !(profile.snapshot.*key.in_release);
}

// Returns whether the file lacks a key that the release would have written.
bool HasLess(const LayoutKey& key, const TorchProfile& profile, const Trace& trace) {
  return profile.snapshot.*key.in_release && HasPlace(trace, key.place) &&
         !(trace.layout.*key.in_file);
}

// Returns the keys that bound the range from below and from above.
std::vector<std::string> Evidence(const std::vector<const TorchProfile*>& fitting,
                                  const Trace& trace) {
  std::vector<std::string> evidence;
  const absl::Span<const TorchProfile> all = AllTorchProfiles();
  const TorchProfile* before = fitting.front() == &all.front() ? nullptr : fitting.front() - 1;
  const TorchProfile* after = fitting.back() == &all.back() ? nullptr : fitting.back() + 1;
  for (const LayoutKey& key : kKeys) {
    if (before != nullptr && HasMore(key, *before, trace)) evidence.emplace_back(key.name);
  }
  if (before != nullptr && !KnowsSettings(*before, trace)) evidence.emplace_back("its settings");
  for (const LayoutKey& key : kKeys) {
    if (after == nullptr) break;
    if (HasLess(key, *after, trace)) evidence.push_back(StrCat("no ", key.name));
    if (HasMore(key, *after, trace)) evidence.emplace_back(key.name);
  }
  return evidence;
}

}  // namespace

bool IsOfNpu(const Trace& trace) {
  for (uint32_t i = 0; i < trace.strings.size(); ++i) {
    if (trace.strings[i].find("/torch_npu/") != std::string_view::npos) return true;
  }
  return false;
}

absl::StatusOr<ProfileChoice> ChooseProfile(const Trace& trace,
                                            const std::optional<std::string>& version) {
  if (version.has_value()) {
    ASSIGN_OR_RETURN(const TorchProfile* found, FindTorchProfile(*version));
    return ProfileChoice{found, ProfileReason::kGiven};
  }
  if (!trace.torch_version.empty()) {
    const absl::StatusOr<const TorchProfile*> found = FindTorchProfile(trace.torch_version);
    if (found.ok()) return ProfileChoice{*found, ProfileReason::kInFile};
  }
  if (trace.is_program) {
    return ProfileChoice{&DefaultTorchProfile(), ProfileReason::kDefault};
  }
  return InferTorchProfile(trace);
}

absl::Status CheckMemory(std::optional<Bytes> total, std::string_view whose) {
  if (!total.has_value() || *total <= kMaxDeviceMemory) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat(whose, ": expected the memory of a device, at most ",
                                           kMaxDeviceMemory.value(), " bytes (256 TiB), found ",
                                           total->value()));
}

absl::StatusOr<ReplaySettings> ResolveSettings(const Trace& trace, const SettingsRequest& request) {
  ReplaySettings settings;
  settings.as_recorded = !trace.is_program && !request.conf.has_value() &&
                         (!request.torch.has_value() || request.torch_is_as_recorded) &&
                         !request.capacity.has_value() && !request.unlimited &&
                         !request.fraction.has_value() && !request.order.has_value();
  absl::Status memory = CheckMemory(request.capacity, "capacity");
  memory.Update(CheckMemory(trace.total_memory, "the file's device memory"));
  if (!memory.ok()) return memory;
  ASSIGN_OR_RETURN(settings.torch, ChooseProfile(trace, request.torch));
  const TorchProfile& profile = *settings.torch.profile;

  std::vector<std::string> recorded_notes;
  absl::StatusOr<AllocatorConfig> recorded = RecordedConfig(trace, profile, &recorded_notes);
  absl::StatusOr<AllocatorConfig> config = recorded;
  if (request.conf.has_value()) {
    config = GivenConfig(*request.conf, profile, &settings.notes);
    if (!recorded.ok()) recorded = AllocatorConfig();
  } else {
    settings.notes = std::move(recorded_notes);
    std::string changes = DescribeChanges(trace, profile);
    if (!changes.empty()) settings.notes.push_back(std::move(changes));
  }
  if (!config.ok()) return config.status();
  settings.config = *std::move(config);
  settings.recorded_config = *std::move(recorded);

  if (HasPoolForOom(trace)) {
    settings.notes.push_back(
        "the script made a MemPool with use_on_oom=True, which is not modelled in what-ifs: what "
        "that pool served when memory ran out stays in it");
  }
  if (IsOfNpu(trace)) settings.notes.emplace_back(kNpuNote);
  if (!request.capacity_note.empty()) settings.notes.push_back(request.capacity_note);
  settings.order = request.order.has_value() ? *request.order : OrderOf(trace);
  settings.unlimited = request.unlimited;
  if (!request.unlimited) {
    settings.capacity = request.capacity.has_value() ? request.capacity : trace.total_memory;
  }
  settings.fraction = request.fraction.has_value() ? request.fraction : trace.memory_fraction;
  if (settings.fraction.has_value() && !(*settings.fraction >= 0 && *settings.fraction <= 1)) {
    return absl::InvalidArgumentError(
        StrCat("memory fraction: expected a number from 0 to 1, found ", *settings.fraction));
  }
  if (settings.config.backend == Backend::kCudaMallocAsync) {
    settings.notes.push_back(
        "backend:cudaMallocAsync is approximate: used bytes are exact, but the driver's pool is "
        "assumed to be their high-water mark, in steps of 32 MiB");
  }
  return settings;
}

AddressOrder OrderOf(const Trace& trace) {
  if (trace.is_program) return AddressOrder::kChunksDownwards;  // it has no addresses
  if (trace.addresses_ascend.has_value()) {
    return *trace.addresses_ascend ? AddressOrder::kUpwards : AddressOrder::kChunksDownwards;
  }
  constexpr Address kLinux = Address(uint64_t{1} << 40);
  for (const DeviceTrace& device : trace.devices) {
    for (const SegmentInfo& segment : device.final_state) {
      if (segment.is_expandable) continue;
      return segment.address < kLinux ? AddressOrder::kUpwards : AddressOrder::kChunksDownwards;
    }
    for (const Event& event : device.events) {
      if (event.kind != EventKind::kSegmentAlloc) continue;
      return event.address < kLinux ? AddressOrder::kUpwards : AddressOrder::kChunksDownwards;
    }
  }
  return AddressOrder::kChunksDownwards;
}

RecordedSettings DescribeSettings(const AllocatorConfig& config) {
  RecordedSettings settings;
  settings.conf = config.conf;
  settings.max_split_size = config.max_split_size.signed_value();  // unlimited prints as -1
  settings.garbage_collection_threshold = config.garbage_collection_threshold;
  settings.expandable_segments = config.expandable_segments;
  settings.graph_capture_record_stream_reuse = config.graph_capture_record_stream_reuse;
  for (size_t index = 0; index < config.roundup_power2_divisions.size(); ++index) {
    settings.roundup_power2_divisions.emplace_back(uint64_t{1} << index,
                                                   config.roundup_power2_divisions[index]);
  }
  return settings;
}

std::string AllocatorRelease(std::string_view torch_version) {
  return torch_version.substr(0, 2) == "1." ? "2.0" : std::string(torch_version);
}

ProfileChoice InferTorchProfile(const Trace& trace) {
  ProfileChoice inferred;
  const TorchProfile* oldest_with_all = nullptr;
  for (const TorchProfile& profile : AllTorchProfiles()) {
    const auto any = [&](const auto& differs) {
      return std::any_of(std::begin(kKeys), std::end(kKeys),
                         [&](const LayoutKey& key) { return differs(key, profile, trace); });
    };
    if (any(HasMore) || !KnowsSettings(profile, trace)) continue;
    if (oldest_with_all == nullptr) oldest_with_all = &profile;
    if (!any(HasLess)) inferred.fitting.push_back(&profile);
  }
  if (!inferred.fitting.empty()) {
    inferred.reason = ProfileReason::kLayout;
    inferred.profile = inferred.fitting.back();
    inferred.evidence = Evidence(inferred.fitting, trace);
  } else if (oldest_with_all != nullptr) {
    inferred.reason = ProfileReason::kNewestKey;
    inferred.profile = oldest_with_all;
  } else {
    inferred.reason = ProfileReason::kUnknownLayout;
    inferred.profile = &DefaultTorchProfile();
  }
  return inferred;
}

}  // namespace memreplay

#include "sim/recording/torch_inference.h"

#include <algorithm>
#include <vector>

#include "sim/settings/conf_tokens.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// The place of a key; a file without that place cannot show the key.
enum class Place { kBlock, kSegment, kTopLevel, kSettings, kEvent };

bool HasPlace(const Trace& trace, Place place) {
  switch (place) {
    case Place::kBlock: return trace.layout.has_block_addresses || trace.layout.has_block_history;
    case Place::kSegment: return trace.layout.has_block_addresses;
    case Place::kTopLevel: return trace.layout.has_device_traces;
    case Place::kSettings: return trace.layout.has_allocator_settings;
    case Place::kEvent:
      return std::any_of(trace.devices.begin(), trace.devices.end(),
                         [](const DeviceTrace& device) { return !device.events.empty(); });
  }
  return false;
}

struct LayoutKey {
  std::string_view name;
  bool SnapshotLayout::*in_release;
  bool LayoutFacts::*in_file;
  Place place;
};

constexpr LayoutKey kKeys[] = {
    {"block history", &SnapshotLayout::block_history, &LayoutFacts::has_block_history,
     Place::kBlock},
    {"block addresses", &SnapshotLayout::block_addresses, &LayoutFacts::has_block_addresses,
     Place::kBlock},
    {"is_expandable", &SnapshotLayout::is_expandable, &LayoutFacts::has_is_expandable,
     Place::kSegment},
    {"time_us", &SnapshotLayout::time_us, &LayoutFacts::has_time_us, Place::kEvent},
    {"allocator_settings", &SnapshotLayout::allocator_settings,
     &LayoutFacts::has_allocator_settings, Place::kTopLevel},
    {"external_annotations", &SnapshotLayout::external_annotations,
     &LayoutFacts::has_external_annotations, Place::kTopLevel},
    {"compile_context", &SnapshotLayout::compile_context, &LayoutFacts::has_compile_context,
     Place::kEvent},
    {"graph_capture_record_stream_reuse", &SnapshotLayout::graph_capture_record_stream_reuse,
     &LayoutFacts::has_graph_capture_record_stream_reuse, Place::kSettings},
    {"user_metadata", &SnapshotLayout::user_metadata, &LayoutFacts::has_user_metadata,
     Place::kEvent},
    {"pool_id of events", &SnapshotLayout::pool_id, &LayoutFacts::has_event_pool_id, Place::kEvent},
};

bool KnowsSettings(const TorchProfile& profile, const Trace& trace) {
  if (!trace.settings.has_value()) return true;
  for (const std::string& token : ConfTokens(trace.settings->conf, profile.conf_shared_parser)) {
    const std::optional<ConfKey> key = FindConfKey(token);
    if (key && !profile.conf_keys.Has(*key)) return false;
  }
  return true;
}

// Returns whether the release has all keys that the file has.
bool HasAll(const TorchProfile& profile, const Trace& trace) {
  for (const LayoutKey& key : kKeys) {
    if (trace.layout.*key.in_file && !(profile.snapshot.*key.in_release)) return false;
  }
  return KnowsSettings(profile, trace);
}

// Returns whether the release would have written nothing that the file lacks.
bool LacksNothing(const TorchProfile& profile, const Trace& trace) {
  for (const LayoutKey& key : kKeys) {
    if (profile.snapshot.*key.in_release && HasPlace(trace, key.place) &&
        !(trace.layout.*key.in_file)) {
      return false;
    }
  }
  return true;
}

// Returns the keys that bound the range from below and from above.
std::vector<std::string> Evidence(const std::vector<const TorchProfile*>& fitting,
                                  const Trace& trace) {
  std::vector<std::string> evidence;
  const absl::Span<const TorchProfile> all = AllTorchProfiles();
  const TorchProfile* before = fitting.front() == &all.front() ? nullptr : fitting.front() - 1;
  const TorchProfile* after = fitting.back() == &all.back() ? nullptr : fitting.back() + 1;
  for (const LayoutKey& key : kKeys) {
    if (before != nullptr && trace.layout.*key.in_file && !(before->snapshot.*key.in_release)) {
      evidence.emplace_back(key.name);
    }
  }
  if (before != nullptr && !KnowsSettings(*before, trace)) evidence.emplace_back("its settings");
  for (const LayoutKey& key : kKeys) {
    if (after != nullptr && !(trace.layout.*key.in_file) && HasPlace(trace, key.place) &&
        after->snapshot.*key.in_release) {
      evidence.push_back(StrCat("no ", key.name));
    } else if (after != nullptr && trace.layout.*key.in_file &&
               !(after->snapshot.*key.in_release)) {
      evidence.emplace_back(key.name);
    }
  }
  return evidence;
}

}  // namespace

ProfileChoice InferTorchProfile(const Trace& trace) {
  ProfileChoice inferred;
  const TorchProfile* oldest_with_all = nullptr;
  for (const TorchProfile& profile : AllTorchProfiles()) {
    if (!HasAll(profile, trace)) continue;
    if (oldest_with_all == nullptr) oldest_with_all = &profile;
    if (LacksNothing(profile, trace)) inferred.fitting.push_back(&profile);
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

#include "sim/recording/settings_evidence.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "sim/settings/size_rules.h"
#include "trace/schedule/settings_changes.h"

namespace memreplay {
namespace {

// Returns the kind and amount of memory that the malloc with the entry `own` got from the driver in
// `supply`, its last effect, or "" if `config` requests the same.
std::string Compare(const Event& supply, const Event& own, const AllocatorConfig& config,
                    const TorchProfile& profile) {
  const bool expandable =
      config.expandable_segments && (supply.pool == 0 || profile.private_pools_expandable);
  if (supply.kind == EventKind::kSegmentMap) {
    return expandable || supply.pool != 0 ? "" : "mapped pages of an expandable segment";
  }
  if (expandable && supply.pool != 0) return "";  // a pool may have its own allocator
  if (expandable) return "obtained a segment that is not expandable";
  // An oom contains the rounded size.
  const Bytes rounded =
      own.kind == EventKind::kOom ? own.size : RoundSize(own.size, config, profile);
  const Bytes expected = AllocationSize(rounded, config);
  if (supply.size == expected) return "";
  return absl::StrCat("obtained a segment of ", supply.size.value(), " bytes for a request of ",
                      own.size.value(), ", where these settings request ", expected.value());
}

}  // namespace

std::optional<OtherSettings> FindOtherSettings(const Schedule& schedule,
                                               const AllocatorConfig& config,
                                               const TorchProfile& profile) {
  const EventView events = schedule.recorded();
  AllocatorConfig current = config;
  const std::vector<SettingsChange> changes =
      SettingsChanges(schedule.device_trace(), SettingsAtStart(schedule.trace()));
  auto change = changes.begin();
  for (size_t i = 0; i + 1 < events.size(); ++i) {
    for (; change != changes.end() && change->event <= i; ++change) {
      // Of a text that PyTorch rejects it applies the beginning, too.
      const std::string_view text = schedule.trace().strings[change->text];
      ParseAllocatorConf(text, profile, &current).IgnoreError();
    }
    const bool is_supply =
        events[i].kind == EventKind::kSegmentAlloc || events[i].kind == EventKind::kSegmentMap;
    const bool is_malloc =
        events[i + 1].kind == EventKind::kAlloc || events[i + 1].kind == EventKind::kOom;
    if (!is_supply || !is_malloc) continue;
    // A malloc got memory and then did not use it, so there is nothing to compare it with.
    if (events[i].kind == EventKind::kSegmentAlloc && events[i + 1].kind == EventKind::kOom) {
      continue;
    }
    const std::string sign = Compare(events[i], events[i + 1], current, profile);
    if (!sign.empty()) return OtherSettings{i, absl::StrCat("event ", i, " ", sign)};
  }
  return std::nullopt;
}

}  // namespace memreplay

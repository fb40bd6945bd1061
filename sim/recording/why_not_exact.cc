#include "sim/recording/why_not_exact.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "sim/settings/size_rules.h"
#include "trace/schedule/settings_changes.h"

namespace memreplay {
namespace {

// Returns whether the file begins with a malloc's own entry and that is what diverged.
bool IsRestOfRequest(const Schedule& schedule, uint64_t event) {
  const EventView recorded = schedule.recorded();
  return event == 0 && !recorded.empty() && recorded[0].kind == EventKind::kAlloc;
}

// Returns whether there is a pool whose segments the recording may have released without naming it.
bool HasUnknownPools(const Schedule& schedule) {
  if (schedule.pools().size() < 2 || schedule.trace().layout.has_event_pool_id) return false;
  return std::any_of(schedule.recorded().begin(), schedule.recorded().end(), [](const Event& e) {
    return e.kind == EventKind::kSegmentFree || e.kind == EventKind::kSegmentUnmap;
  });
}

// Adds what the file does not contain of the state at the beginning.
void AddStartState(const ExactReplayResult& result, const Schedule& schedule,
                   const AllocatorConfig& config, std::vector<std::string>* causes) {
  const uint64_t event = result.first_divergence->index;
  const StartState& start = result.start;
  const auto undetermined =
      std::count_if(start.hidden.begin(), start.hidden.end(), [event](const HiddenExtent& hidden) {
        return hidden.choices != 1 && hidden.freed_by >= event;
      });
  if (undetermined > 0) {
    causes->push_back(absl::StrCat("the file does not determine the extents of ", undetermined,
                                   " blocks that were live at the start"));
  }
  if (config.garbage_collection_threshold > 0) {
    causes->push_back(
        "garbage collection chooses cached blocks by age, and files do not record the ages of "
        "blocks cached at the start");
  }
  if (IsRestOfRequest(schedule, event)) {
    causes->push_back(
        "the start of the recording, which may have shown what that request did, is missing");
  }
}

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

std::string WhyNotExact(const ExactReplayResult& result, const Schedule& schedule,
                        const AllocatorConfig& config, const TorchProfile& profile) {
  if (!result.first_divergence.has_value()) return "";
  const Divergence& divergence = *result.first_divergence;
  const StartState& start = result.start;
  std::vector<std::string> causes;
  if (const uint64_t outside = schedule.diagnostics().count(DiagnosticKind::kAllocOutsideSegments);
      outside > 0) {
    causes.push_back(
        absl::StrCat(outside, " allocations are not in any segment that the file lists"));
  } else if (const auto other = FindOtherSettings(schedule, config, profile); other.has_value()) {
    causes.push_back(
        absl::StrCat("the file lists the settings at its end, and they did not apply throughout: ",
                     other->sign));
  } else if (start.contradicted_at.has_value() && *start.contradicted_at <= divergence.index) {
    causes.push_back(absl::StrCat("under these settings no start state explains event ",
                                  *start.contradicted_at, ": ", start.contradiction));
  } else if (!schedule.is_cold() && schedule.final_state() == nullptr) {
    causes.push_back("the recording began with memory in use, and the file lists no segments");
  } else if (!schedule.is_cold()) {
    AddStartState(result, schedule, config, &causes);
    if (profile.free_tie != FreeTie::kAddress) {
      causes.push_back(
          result.ties_known
              ? "this release chooses the older of two equal blocks; files do not record ages at "
                "the start, and the recorded addresses determine them only in part"
              : "this release chooses the older of two equal blocks; files do not record ages at "
                "the start, and the recorded addresses are contradictory or too many to compare");
    }
  }
  if (HasUnknownPools(schedule)) {
    causes.push_back("the file does not say to which pools the released segments belonged");
  }
  if (causes.empty() && schedule.pools().size() > 1) {
    causes.push_back(
        "PyTorch records neither when private pools were filled nor when they were released");
  }
  if (schedule.pools().size() > 1 && schedule.pool_flags().empty() && profile.no_split_pools) {
    causes.push_back(
        "files do not contain the options of MemPools (no_split, use_on_oom), unless memreplay "
        "recorded them");
  }
  if (causes.empty()) {
    causes.push_back(
        "nothing in the file explains it: other settings may have applied, or the file was "
        "changed after PyTorch wrote it");
  }
  return absl::StrCat("event ", divergence.index, ": ", DescribeDivergence(divergence, schedule),
                      "; ", absl::StrJoin(causes, "; "));
}

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

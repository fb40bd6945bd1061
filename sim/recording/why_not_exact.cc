#include "sim/recording/why_not_exact.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "sim/recording/settings_evidence.h"

namespace memreplay {
namespace {

// Whether the file begins with a malloc's own entry, and that is what diverged.
bool IsRestOfRequest(const Schedule& schedule, uint64_t event) {
  const EventView recorded = schedule.recorded();
  return event == 0 && !recorded.empty() && recorded[0].kind == EventKind::kAlloc;
}

// A pool whose segments the recording may have released without naming it.
bool HasUntoldPools(const Schedule& schedule) {
  const Trace& trace = schedule.trace();
  if (trace.pools.size() < 2 || trace.layout.has_event_pool_id) return false;
  return std::any_of(schedule.recorded().begin(), schedule.recorded().end(), [](const Event& e) {
    return e.kind == EventKind::kSegmentFree || e.kind == EventKind::kSegmentUnmap;
  });
}

// What of the state at the beginning the file does not tell.
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
                                   " blocks that were live at the beginning"));
  }
  if (config.garbage_collection_threshold > 0) {
    causes->push_back(
        "the ages of cached blocks at the beginning, by which garbage collection chooses, are in "
        "no file");
  }
  if (IsRestOfRequest(schedule, event)) {
    causes->push_back("what that request did before may have been lost with the recording's head");
  }
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
    causes.push_back(absl::StrCat(outside, " allocs lie in no segment that the file knows of"));
  } else if (const auto other = FindOtherSettings(schedule, config, profile); other.has_value()) {
    causes.push_back(
        absl::StrCat("the settings that the file lists, those at its end, were not in force all "
                     "along: ",
                     other->sign));
  } else if (start.contradicted_at.has_value() && *start.contradicted_at <= divergence.index) {
    causes.push_back(absl::StrCat("no start state under these settings explains event ",
                                  *start.contradicted_at, ": ", start.contradiction));
  } else if (!schedule.is_cold() && schedule.final_state() == nullptr) {
    causes.push_back("the recording began with memory in use, and the file lists no segments");
  } else if (!schedule.is_cold()) {
    AddStartState(result, schedule, config, &causes);
    if (profile.free_tie != FreeTie::kAddress) {
      causes.push_back(
          result.ties_known
              ? "which of equal blocks at the beginning were older, by which this release "
                "chooses, is in no file and follows from recorded addresses only in part"
              : "which of equal blocks at the beginning were older, by which this release "
                "chooses, is in no file, and the recorded addresses contradict each other on it "
                "or are too many to compare");
    }
  }
  if (HasUntoldPools(schedule)) {
    causes.push_back("the file does not say whose pool the segments were that it saw released");
  }
  if (causes.empty() && schedule.trace().pools.size() > 1) {
    causes.push_back(
        "PyTorch records neither when private pools were being filled nor when they were given up");
  }
  if (causes.empty()) {
    causes.push_back(
        "nothing in the file explains it: other settings may have been in force, or the file is "
        "not as PyTorch wrote it");
  }
  return absl::StrCat("event ", divergence.index, ": ", DescribeDivergence(divergence, schedule),
                      "; ", absl::StrJoin(causes, "; "));
}

}  // namespace memreplay

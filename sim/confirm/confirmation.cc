#include "sim/confirm/confirmation.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "sim/device/simulated_device.h"
#include "trace/value/status_macros.h"

namespace memreplay {
namespace {

// Returns the first calls that the device could not grant because memory ran out (and not because
// the schedule injects failures), one per request.
std::vector<const MemoryCall*> RealRefusals(const DeviceRun& run) {
  std::vector<const MemoryCall*> refusals;
  for (const OomMoment& oom : run.ooms) {
    const auto refused =
        std::find_if(run.calls.begin(), run.calls.end(), [&](const MemoryCall& call) {
          return call.request == oom.request && !call.granted &&
                 call.used + RoundUp(call.size, MiB(2)).signed_value() >
                     run.free_before.signed_value();
        });
    if (refused != run.calls.end()) refusals.push_back(&*refused);
  }
  return refusals;
}

void CompareCalls(absl::Span<const MemoryCall> predicted, MeasuredRun* result) {
  const absl::Span<const MemoryCall> measured = result->run.calls;
  result->calls_predicted = predicted.size();
  for (size_t i = 0; i < std::max(predicted.size(), measured.size()); ++i) {
    if (i == predicted.size() || i == measured.size() || predicted[i].kind != measured[i].kind ||
        predicted[i].size != measured[i].size || predicted[i].granted != measured[i].granted ||
        predicted[i].request != measured[i].request) {
      CallDifference& part = result->calls_differ.emplace();
      if (i < predicted.size()) part.predicted = predicted[i];
      if (i < measured.size()) part.measured = measured[i];
      return;
    }
    ++result->calls_compared;
    result->predicted_used.push_back(predicted[i].used);
    const int64_t difference = measured[i].used - predicted[i].used;
    if (std::abs(difference) > std::abs(result->largest_used_difference)) {
      result->largest_used_difference = difference;
      result->largest_used_difference_request = measured[i].request;
    }
  }
}

}  // namespace

std::optional<Shortage> FindShortage(const RunPlan& plan, const DeviceRun& predicted, Bytes free,
                                     std::optional<Bytes> asked, uint64_t recorded_ooms) {
  if (asked.has_value()) {
    if (predicted.peak_used <= free.signed_value()) return std::nullopt;
    return Shortage{predicted.peak_used, false, free, predicted.peak_used_request};
  }
  const std::vector<const MemoryCall*> refusals = RealRefusals(predicted);
  if (refusals.size() <= recorded_ooms) return std::nullopt;
  const MemoryCall& first = *refusals.front();
  Shortage shortage{first.used + first.size.signed_value(), true, free, first.request};
  // A fraction refers to the device's memory and would mean another amount there.
  if (!plan.settings->fraction.has_value()) {
    const absl::StatusOr<DeviceRun> unlimited =
        RunSimulated(plan, SimulatedDevice::kUnlimitedTotal, SimulatedDevice::kUnlimitedTotal);
    if (unlimited.ok() && unlimited->ooms.empty()) {
      shortage.needed = unlimited->peak_used;
      shortage.at_least = false;
    }
  }
  return shortage;
}

absl::StatusOr<MeasuredRun> CompareWithPrediction(const RunPlan& plan, const DeviceRun& predicted,
                                                  DeviceRun run) {
  MeasuredRun measured;
  measured.run = std::move(run);
  const DecisionScope scope =
      plan.backend == RunBackend::kAsync ? DecisionScope::kRequests : DecisionScope::kAll;
  measured.as_predicted = CompareDecisions(predicted.decisions, measured.run.decisions, scope);
  ASSIGN_OR_RETURN(
      const DeviceRun placed,
      RunSimulated(plan, measured.run.total, measured.run.free_before, &measured.run.calls));
  measured.with_addresses = CompareDecisions(placed.decisions, measured.run.decisions, scope);
  measured.placed_peak_reserved = placed.peak.reserved();
  measured.placed_peak_used = placed.peak_used;
  // How the driver grows its own pool is not predicted.
  if (plan.backend != RunBackend::kAsync) CompareCalls(placed.calls, &measured);
  return measured;
}

uint64_t PositionOf(const Schedule& schedule, uint32_t request) {
  if (schedule.is_program() || request >= schedule.recorded_begin().size()) return request;
  return schedule.recorded_begin()[request];
}

}  // namespace memreplay

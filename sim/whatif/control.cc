#include "sim/whatif/control.h"

namespace memreplay {

ReplaySettings OnRecordedCard(const ReplaySettings& settings, const CardLimits& card) {
  ReplaySettings on_card = settings;
  const std::optional<Bytes> refused = card.refused();
  if (settings.capacity.has_value() || settings.unlimited || !refused.has_value()) return on_card;
  const bool ran_out =
      card.at_oom.has_value() && *card.at_oom >= card.granted && *card.at_oom < *refused;
  on_card.capacity = ran_out ? *card.at_oom : card.granted;
  return on_card;
}

absl::StatusOr<Bytes> PeakInOtherOrder(const Schedule& schedule, const ReplaySettings& settings,
                                       const WhatIfOptions& options) {
  ReplaySettings other = settings;
  other.order = OtherOrder(settings.order);
  WhatIfOptions plain;
  plain.start = options.start;
  plain.recorded_start = options.recorded_start;
  const absl::StatusOr<WhatIfResult> result = ReplayWhatIf(schedule, other, nullptr, plain);
  if (!result.ok()) return result.status();
  return result->peak.reserved();
}

absl::StatusOr<WhatIfBasis> FindBasis(const Schedule& schedule, const ReplaySettings& settings,
                                      const ExactReplayResult* replay) {
  WhatIfBasis basis;
  if (schedule.is_program()) return basis;
  std::optional<ExactReplayResult> made;
  if (replay == nullptr) {
    replay = &made.emplace(
        ReplayAsRecorded(schedule, settings.recorded_config, *settings.torch.profile));
  }
  basis.card = replay->card;
  basis.start = replay->start.segments;

  ReplaySettings own = settings;
  own.config = settings.recorded_config;
  own.capacity.reset();
  own.fraction.reset();
  own.unlimited = false;
  own = OnRecordedCard(own, basis.card);
  WhatIfOptions options;
  options.recorded_start = &basis.start;
  const absl::StatusOr<WhatIfResult> result = ReplayWhatIf(schedule, own, nullptr, options);
  if (!result.ok()) return result.status();
  const absl::StatusOr<Bytes> other = PeakInOtherOrder(schedule, own, options);
  if (!other.ok()) return other.status();
  basis.control = Control{.peak_reserved = result->peak.reserved(),
                          .other_order_peak_reserved = *other,
                          .ooms = result->run.ooms};
  return basis;
}

}  // namespace memreplay

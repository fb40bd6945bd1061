#include "sim/study/control.h"

namespace memreplay {

ReplaySettings OnRecordedGpu(const ReplaySettings& settings, const GpuLimits& card) {
  ReplaySettings on_card = settings;
  const std::optional<Bytes> refused = card.refused();
  if (settings.capacity.has_value() || settings.unlimited) return on_card;
  on_card.total = card.total;
  if (!refused.has_value()) return on_card;
  const bool ran_out =
      card.at_oom.has_value() && *card.at_oom >= card.granted && *card.at_oom < *refused;
  on_card.capacity = ran_out ? *card.at_oom : card.granted;
  return on_card;
}

}  // namespace memreplay

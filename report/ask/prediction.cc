#include "report/ask/prediction.h"

#include "report/device/device_report.h"
#include "report/words/new_report.h"
#include "report/words/text.h"

namespace memreplay {

proto::Report PredictionReport(const PredictionContext& context, const ReplaySettings& settings,
                               const PhaseUsage& usage) {
  proto::Report report = NewReport("synth");
  proto::Prediction& out = *report.mutable_prediction();
  out.set_model(context.model);
  out.set_parameters(context.parameters);
  out.set_conf(CleanText(settings.config.conf));
  *out.mutable_torch() = DescribeChoice(settings.torch);
  if (settings.capacity.has_value()) out.set_capacity_bytes(settings.capacity->signed_value());
  out.set_peak_allocated_bytes(usage.highest().allocated.signed_value());
  out.set_peak_reserved_bytes(usage.peak_reserved().signed_value());
  out.set_context_bytes(context.cuda_context.bytes);
  out.set_context_reason(context.cuda_context.reason);
  out.set_peak_phase(CleanText(usage.highest().phase));
  for (const PhasePeak& phase : usage.phases()) {
    proto::Prediction::Phase& p = *out.add_phases();
    p.set_name(CleanText(phase.phase));
    p.set_peak_allocated_bytes(phase.allocated.signed_value());
    p.set_peak_reserved_bytes(phase.reserved.signed_value());
    for (const auto& [tag, bytes] : phase.by_tag) {
      (*p.mutable_bytes_by_tag())[CleanText(tag)] = bytes.signed_value();
    }
  }
  if (usage.oom().has_value()) {
    const PhaseOom& oom = *usage.oom();
    out.mutable_oom()->set_phase(CleanText(oom.phase));
    out.mutable_oom()->set_label(CleanText(oom.label));
    out.mutable_oom()->set_name(CleanText(oom.name));
    out.mutable_oom()->set_size_bytes(oom.size.signed_value());
    out.mutable_oom()->set_allocated_bytes(oom.allocated.signed_value());
    out.mutable_oom()->set_reserved_bytes(oom.reserved.signed_value());
  }
  return report;
}

}  // namespace memreplay

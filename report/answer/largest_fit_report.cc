#include "report/answer/largest_fit_report.h"

#include "report/words/text.h"
#include "report/words/version.h"

namespace memreplay {

proto::Report LargestFitReport(const LargestFitContext& context,
                               const std::vector<FitTrials>& settings) {
  proto::Report report;
  report.set_schema_version(kReportSchemaVersion);
  report.set_tool_version(kVersion);
  report.set_command("fit");
  proto::LargestFit& out = *report.mutable_largest_fit();
  out.set_model(context.model);
  out.set_key(context.key);
  out.set_torch_release(context.torch);
  out.set_capacity_bytes(context.capacity.signed_value());
  out.set_context_bytes(context.cuda_context.signed_value());
  for (const FitTrials& tried : settings) {
    proto::LargestFit::Setting& setting = *out.add_settings();
    setting.set_conf(CleanText(tried.conf));
    setting.set_refused(CleanText(tried.refused));
    setting.set_largest(tried.found.largest.value_or(0));
    setting.set_safe(tried.found.safe.value_or(0));
    setting.set_safe_is_proven(tried.found.safe_is_proven);
    setting.set_largest_is_proven(tried.found.largest_is_proven);
    for (const FitTrial& trial : tried.trials) {
      proto::LargestFit::Trial& t = *setting.add_trials();
      t.set_value(trial.value);
      t.set_fits(!trial.oom.has_value());
      t.set_peak_allocated_bytes(trial.peak_allocated.signed_value());
      t.set_peak_reserved_bytes(trial.peak_reserved.signed_value());
      t.set_phase(CleanText(trial.oom.has_value() ? trial.oom->phase : trial.peak_phase));
      if (!trial.oom.has_value()) continue;
      t.set_label(CleanText(trial.oom->label));
      t.set_tensor(CleanText(trial.oom->name));
      t.set_size_bytes(trial.oom->size.signed_value());
    }
  }
  return report;
}

}  // namespace memreplay

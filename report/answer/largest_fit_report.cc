#include "report/answer/largest_fit_report.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "report/words/sizes.h"
#include "report/words/text.h"
#include "report/words/version.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

std::string ConfName(const std::string& conf) {
  return conf.empty() ? std::string("default settings") : conf;
}

std::string Answer(const proto::LargestFit& fit, const proto::LargestFit::Setting& setting) {
  if (!setting.refused().empty()) return StrCat("not taken: ", setting.refused());
  if (setting.largest() == 0) return StrCat("none: ", fit.key(), " 1 does not fit");
  std::string answer = FormatCount(setting.largest());
  if (setting.safe() < setting.largest()) {
    StrAppend(&answer, " (but not every one below: all up to ", FormatCount(setting.safe()), ")");
  }
  return answer;
}

}  // namespace

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

std::string RenderLargestFit(const proto::Report& report) {
  const proto::LargestFit& fit = report.largest_fit();
  std::string text =
      StrCat(fit.model(), ": largest ", fit.key(), " where the allocator can get ",
             FormatSize(fit.capacity_bytes()), " (and the CUDA context is assumed ", "to take ",
             FormatSize(fit.context_bytes()), " more), torch ", fit.torch_release(), "\n");
  size_t width = 0;
  for (const auto& setting : fit.settings())
    width = std::max(width, ConfName(setting.conf()).size());
  for (const auto& setting : fit.settings()) {
    const std::string name = ConfName(setting.conf());
    StrAppend(&text, "  ", name, std::string(width + 2 - name.size(), ' '), Answer(fit, setting),
              "\n");
  }
  for (const auto& setting : fit.settings()) {
    if (setting.trials().empty()) continue;
    StrAppend(&text, "\n", ConfName(setting.conf()), "\n",
              absl::StrFormat("  %11s %11s %11s %11s  %s\n", ToAbsl(fit.key()), "allocated",
                              "reserved", "process", "where"));
    for (const auto& trial : setting.trials()) {
      StrAppend(&text, absl::StrFormat("  %11s", FormatCount(trial.value())));
      if (trial.fits()) {
        StrAppend(&text,
                  absl::StrFormat(" %11s %11s %11s  peak in %s\n",
                                  FormatSize(trial.peak_allocated_bytes()),
                                  FormatSize(trial.peak_reserved_bytes()),
                                  FormatSize(trial.peak_reserved_bytes() + fit.context_bytes()),
                                  trial.phase()));
      } else {
        StrAppend(&text,
                  absl::StrFormat(" %35s  %s%s%s: %s for %s\n", "OUT OF MEMORY", trial.phase(),
                                  trial.label().empty() ? "" : ", ", trial.label(),
                                  FormatSize(trial.size_bytes()), trial.tensor()));
      }
    }
  }
  return text;
}

}  // namespace memreplay

#include "report/text/render_largest_fit.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "report/words/answer.h"
#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

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

std::string RenderLargestFit(const proto::Report& report) {
  const proto::LargestFit& fit = report.largest_fit();
  std::string text =
      StrCat(fit.model(), ": largest ", fit.key(), " where the allocator can get ",
             FormatSize(fit.capacity_bytes()), " (and the CUDA context is assumed ", "to take ",
             FormatSize(fit.context_bytes()), " more), torch ", fit.torch_release(), "\n");
  size_t width = 0;
  for (const auto& setting : fit.settings())
    width = std::max(width, SettingsName(setting.conf()).size());
  for (const auto& setting : fit.settings()) {
    const std::string name = SettingsName(setting.conf());
    StrAppend(&text, "  ", name, std::string(width + 2 - name.size(), ' '), Answer(fit, setting),
              "\n");
  }
  for (const auto& setting : fit.settings()) {
    if (setting.trials().empty()) continue;
    StrAppend(&text, "\n", SettingsName(setting.conf()), "\n",
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

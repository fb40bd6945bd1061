#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_format.h"
#include "report/text/render.h"
#include "report/words/answer.h"
#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr int64_t kShownNear = 3;

std::string Answer(const proto::LargestFit& fit, const proto::LargestFit::Setting& setting) {
  if (!setting.refused().empty()) return StrCat("rejected: ", setting.refused());
  if (setting.largest() == 0) return StrCat("none: ", fit.key(), " 1 does not fit either");
  std::string answer = setting.safe() == 0 ? "no value is safe" : FormatCount(setting.safe());
  if (setting.safe() < setting.largest()) {
    StrAppend(&answer, " (", FormatCount(setting.largest()),
              " also fits, but not every value below it)");
  }
  if (!setting.safe_is_proven() || !setting.largest_is_proven()) {
    StrAppend(&answer, ", among the ", FormatCount(setting.trials_size(), "value"),
              " tried; trying all would take too many runs");
  }
  return answer;
}

// Returns whether a value that was tried is worth a line: the doublings, and those near an edge.
bool IsShown(const proto::LargestFit::Setting& setting, int64_t value) {
  const auto is_near = [value](int64_t edge) { return std::abs(value - edge) <= kShownNear; };
  return (value & (value - 1)) == 0 || is_near(setting.safe()) || is_near(setting.largest());
}

}  // namespace

std::string RenderLargestFit(const proto::Report& report) {
  const proto::LargestFit& fit = report.largest_fit();
  std::string text = StrCat(fit.model(), ": largest ", fit.key(), " that fits in ",
                            FormatSize(fit.capacity_bytes()),
                            " for the allocator (plus an assumed ", FormatSize(fit.context_bytes()),
                            " for the CUDA context), torch ", fit.torch_release(), "\n");
  size_t width = 0;
  for (const auto& setting : fit.settings())
    width = std::max(width, SettingsName(setting.conf()).size());
  for (const auto& setting : fit.settings()) {
    const std::string name = SettingsName(setting.conf());
    StrAppend(&text, "  ", name, std::string(width + 2 - name.size(), ' '), Answer(fit, setting),
              "\n");
  }
  StrAppend(&text, "  CUDA context: ", FormatSize(fit.context_bytes()), " (", fit.context_reason(),
            ")\n");
  for (const auto& setting : fit.settings()) {
    if (setting.trials().empty()) continue;
    StrAppend(&text, "\n", SettingsName(setting.conf()), "\n",
              absl::StrFormat("  %11s %11s %11s %11s  %s\n", ToAbsl(fit.key()), "allocated",
                              "reserved", "process", "where"));
    int64_t left_out = 0;
    for (const auto& trial : setting.trials()) {
      if (!IsShown(setting, trial.value())) {
        ++left_out;
        continue;
      }
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
    if (left_out > 0) {
      StrAppend(&text, "  and ", FormatCount(left_out), " more tried; --json lists them\n");
    }
  }
  return text;
}

}  // namespace memreplay

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "report/table/tables.h"
#include "report/text/render.h"
#include "report/words/answer.h"
#include "report/words/lines.h"
#include "report/words/sizes.h"
#include "report/words/verdict.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// Unused memory below this share of reserved memory needs no explanation.
constexpr double kLittle = 0.2;
// Devices shown below and above the smallest that survives.
constexpr int kNearEdge = 3;

std::string Fidelity(const proto::DeviceReport& device) {
  if (device.fidelity().compared_events() == 0) {
    return device.inventory().is_program() ? "a schedule: there is no recording to compare with"
                                           : "no recorded events to compare with";
  }
  return FidelitySentence(device);
}

void RenderBounds(const proto::LowerBounds& bounds, std::string* out) {
  if (bounds.peak_live_bytes() == 0) return;
  StrAppend(out, "\n  for comparison: ", "at most ", FormatSizeExactly(bounds.peak_live_bytes()),
            " is in use at once; ", FormatSizeExactly(bounds.best_packing_bytes()),
            " would be enough if every lifetime were known in advance (", bounds.packing(), ")",
            bounds.best_packing_bytes() == bounds.peak_live_rounded_bytes() &&
                    bounds.best_packing_bytes() > 0
                ? ", which is optimal"
                : "",
            ".\n");
}

void RenderSuggestions(const proto::Sweep& sweep, std::string* out) {
  if (sweep.suggestions_size() == 0) {
    StrAppend(out, "\n  None of the settings tried is better than the current ones.\n");
    return;
  }
  StrAppend(out, "\n  To try one of these, paste its line (it replaces all current settings):\n");
  for (const auto& suggestion : sweep.suggestions()) {
    StrAppend(out, "\n");
    for (const std::string& line : suggestion.lines()) StrAppend(out, "    ", line, "\n");
    StrAppend(out, "      cost: ", suggestion.cost(), "\n");
    for (const std::string& risk : suggestion.risks()) StrAppend(out, "      risk: ", risk, "\n");
  }
}

const proto::PeakCause::Cached* FindCached(const proto::PeakCause& cause,
                                           proto::PeakCause::Obstacle obstacle) {
  for (const auto& cached : cause.cached())
    if (cached.obstacle() == obstacle) return &cached;
  return nullptr;
}

std::string Because(const proto::SweepRow& row, const proto::PeakCause::Cached& cached) {
  const proto::PeakCause::Obstacle obstacle = cached.obstacle();
  const std::string asking = StreamName(row.cause().stream());
  if (obstacle == proto::PeakCause::max_split_size) {
    std::string text =
        "are large enough, but max_split_size_mb does not let smaller requests use blocks of its "
        "size or more";
    const bool expandable = row.conf().find("expandable_segments:True") != std::string::npos;
    if (expandable) {
      text +=
          "; expandable segments merge freed neighbours into such blocks, so reserved memory keeps "
          "growing";
    }
    return text;
  }
  if (obstacle == proto::PeakCause::other_stream) {
    return StrCat("belong to streams other than ", asking,
                  ", and a stream cannot use memory cached by another");
  }
  if (obstacle == proto::PeakCause::other_pool)
    return "belong to another pool or to the pool for small requests";
  if (obstacle == proto::PeakCause::split) {
    return "are remainders of segments that also hold live blocks, so they can neither serve the "
           "request nor be released";
  }
  return "are whole segments that are each too small for the request";
}

// Returns the stack and the event of the request; "" if neither is known.
std::string Asker(const proto::PeakCause& cause) {
  std::string text;
  if (cause.stack().depth() > 0) StrAppend(&text, " by ", cause.stack().summary());
  if (cause.event_index() >= 0) StrAppend(&text, " at event ", FormatCount(cause.event_index()));
  return text;
}

std::string ControlLines(const proto::DeviceReport& device) {
  if (!device.has_control()) return "";
  const std::string card = CardSentence(device.control());
  return StrCat(card.empty() ? "" : StrCat("  recorded GPU: ", card, "\n"),
                "  check: ", ControlSentence(device.control()), "\n");
}

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

std::string CauseSentence(const proto::SweepRow& row) {
  if (!row.has_cause() || row.fragmentation() < kLittle) return "";
  const proto::PeakCause::Cached* cached = FindCached(row.cause(), row.cause().main());
  if (cached == nullptr) return "";
  // This figure is of that moment, which may be long before the peak.
  if (static_cast<double>(cached->bytes()) <
      kLittle * static_cast<double>(row.peak_reserved_bytes())) {
    return "";
  }
  return StrCat("Under ", ConfName(row.conf(), row.memory_fraction()), ", ",
                FormatSize(row.peak_reserved_bytes()), " is reserved although at most ",
                FormatSize(row.peak_allocated_bytes()), " is in use: when ",
                FormatSize(row.cause().requested_bytes()), " was requested on ",
                StreamName(row.cause().stream()), Asker(row.cause()), ", ",
                FormatSize(cached->bytes()), " was cached in ",
                FormatCount(cached->blocks(), "block"), " (the largest ",
                FormatSize(cached->largest_bytes()), ") that ", Because(row, *cached), ".");
}

Text RenderSweep(const proto::DeviceReport& device) {
  const proto::Sweep& sweep = device.sweep();
  Text answer;
  answer.AddAll(AnswerLines(device));
  if (sweep.rows().empty()) return answer;
  std::string& out = answer.text;
  StrAppend(&out, "  torch ", device.torch().release(), " (", device.torch().why(), "); ",
            device.capacity_bytes() > 0 ? StrCat("device of ", FormatSize(device.capacity_bytes()))
                                        : "device of unlimited size; --capacity sets a limit",
            "\n  replay: ", Fidelity(device), "\n", ControlLines(device));
  for (const std::string& note : device.notes()) StrAppend(&out, "  note: ", note, "\n");
  StrAppend(&out, "\n");
  AddTable(SweepTable(sweep), &out);
  StrAppend(&out,
            "  unused: reserved - allocated at the peak of reserved; driver calls: "
            "cudaMalloc/cudaFree/map/unmap/wait\n  ",
            sweep.costs_of().empty() ? "(counts only; --costs adds the times measured on a GPU)"
                                     : StrCat("(their time: as measured on ", sweep.costs_of(),
                                              " while it was idle, without waits)"),
            "\n");
  std::vector<std::string> causes = {CauseSentence(sweep.current())};
  for (const proto::SweepRow& row : sweep.rows()) {
    if (!row.is_current()) causes.push_back(CauseSentence(row));
  }
  for (const std::string& cause : causes) {
    if (!cause.empty()) StrAppend(&out, "\n  ", cause, "\n");
  }
  RenderBounds(sweep.lower_bounds(), &out);
  RenderSuggestions(sweep, &out);
  return answer;
}

Text RenderFits(const proto::DeviceReport& device) {
  const proto::Fits& fits = device.fits();
  Text answer;
  answer.AddAll(AnswerLines(device));
  std::string& out = answer.text;
  StrAppend(&out, "  torch ", device.torch().release(), " (", device.torch().why(),
            "); this is memory for PyTorch alone: the GPU's context, other libraries and other "
            "processes need more\n");
  StrAppend(&out, ControlLines(device));
  for (const std::string& note : device.notes()) StrAppend(&out, "  note: ", note, "\n");
  const auto size = [](int64_t bytes) { return bytes == 0 ? Cell("none") : Cell(bytes); };
  Table table{"",
              {{"safe from", Unit::kSize, "  %1s"},
               {"opposite order", Unit::kSize, "  %1s"},
               {"smallest", Unit::kSize, "  %1s"},
               {"without retries", Unit::kSize, "  %1s"},
               {"reserved without a limit", Unit::kSize, "  %1s"},
               {"settings"}},
              true};
  bool is_sampled = false;
  for (const auto& row : fits.rows()) {
    std::string name = ConfCell(row.conf(), row.memory_fraction(), row.is_current());
    if (!row.refused().empty()) {
      table.Add({"-", "-", "-", "-", "-", StrCat(name, "  REJECTED: ", row.refused())});
      continue;
    }
    if (row.proven_until_bytes() > 0 && row.proven_until_bytes() < row.without_retries_bytes()) {
      StrAppend(&name, "  (proven up to ", FormatSize(row.proven_until_bytes()), ")");
      is_sampled = true;
    }
    table.Add({size(row.safe_bytes()), size(row.other_order_safe_bytes()),
               size(row.smallest_bytes()), size(row.without_retries_bytes()),
               row.unlimited_peak_reserved_bytes(), name});
  }
  StrAppend(&out, "\n");
  AddTable(table, &out);
  StrAppend(
      &out,
      IsLowerBound(device.unseen()) ? "  for what was recorded, safe from: " : "  safe from: ",
      "every larger size works too",
      is_sampled ? " (proven up to the size shown; beyond it, the sizes tried)" : "",
      "; opposite order: the same with addresses in the opposite order; smallest: the "
      "smallest size that works, although a larger one may not\n");
  for (const auto& row : fits.rows()) {
    if (row.safe_bytes() == 0) continue;
    int edge = 0;
    while (row.probes(edge).capacity_bytes() != row.safe_bytes()) ++edge;
    Table near{StrCat("sizes near the limit, ", ConfName(row.conf(), row.memory_fraction())),
               {{"device", Unit::kSize, "  %1s"},
                {"bytes", Unit::kCount, "  %1s"},
                {"out of memory", Unit::kLabel, "  %1s"},
                {"retries", Unit::kCount, "  %1s"},
                {"driver calls", Unit::kCount, "  %1s"},
                {"peak reserved", Unit::kSize}},
               true};
    for (int i = std::max(0, edge - kNearEdge);
         i < std::min(row.probes_size(), edge + kNearEdge + 1); ++i) {
      const auto& probe = row.probes(i);
      near.Add({probe.capacity_bytes(), probe.capacity_bytes(),
                probe.survives() ? "no" : FormatCount(probe.ooms(), "time"), probe.alloc_retries(),
                probe.device_calls(), probe.peak_reserved_bytes()});
    }
    AddTable(near, &out);
  }
  RenderBounds(fits.lower_bounds(), &out);
  return answer;
}

std::string RenderLintText(const proto::Lint& lint) {
  const size_t errors = absl::c_count_if(lint.findings(), [](const proto::Lint::Finding& finding) {
    return finding.severity() == proto::Lint::Finding::error;
  });
  const size_t warnings =
      absl::c_count_if(lint.findings(), [](const proto::Lint::Finding& finding) {
        return finding.severity() == proto::Lint::Finding::warning;
      });
  std::string text = StrCat("PyTorch ", lint.torch().release(), " (", lint.torch().why(), ") ",
                            errors != 0 ? "rejects these settings" : "accepts these settings", ": ",
                            errors, errors == 1 ? " error, " : " errors, ", warnings,
                            warnings == 1 ? " warning\n" : " warnings\n");
  for (const proto::Lint::Finding& finding : lint.findings()) {
    StrAppend(&text, "  ", proto::Lint::Finding::Severity_Name(finding.severity()), ": ",
              finding.key(), finding.key().empty() ? "" : ": ", finding.sentence(), "\n");
  }
  return text;
}

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

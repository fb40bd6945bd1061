#include <algorithm>
#include <string_view>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "report/table/tables.h"
#include "report/text/render.h"
#include "report/words/lines.h"
#include "report/words/names.h"
#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

using HistoryPoint = proto::LoopReport::HistoryPoint;

constexpr int kMaxSites = 3;
constexpr int kMaxHolders = 8;
constexpr int kMinGrownSteps = 3;
constexpr int kMaxColumns = 36;

void RenderSteps(const proto::LoopReport& loop, std::string* out) {
  const proto::StepSummary& steps = loop.steps();
  StrAppend(out, "\n  the loop\n");
  if (steps.steps() == 0) {
    AddRow(out, "steps", "none found: ", steps.why_none());
    return;
  }
  // Layers repeat as steps do.
  const std::string_view step = steps.may_be_layers() ? "repeat" : "step";
  AddRow(
      out, StrCat(step, "s"),
      absl::StrFormat(
          "%s with %s each, found by %s%s, events %s to %s; %.0f %% of all allocations",
          FormatCount(steps.steps()), FormatCount(steps.allocations_per_step(), "allocation"),
          ToAbsl(StepSourceName(steps.source())),
          steps.name().empty() ? "" : StrCat(" ", steps.name()), FormatCount(steps.first_event()),
          FormatCount(steps.end_event()), 100.0 * steps.coverage()));
  AddRow(out, StrCat("growth per ", step), FormatSizeChange(steps.growth_bytes_per_step()), "; ",
         FormatSize(steps.swing_bytes()), " allocated within a ", step);
  if (steps.may_be_layers()) {
    AddRow(out, "",
           "each keeps most of what it allocates, so these may be the layers of one pass rather "
           "than steps");
  }
  if (loop.has_leak()) {
    const proto::LeakEvidence& leak = loop.leak();
    AddRow(out, "LEAK", FormatSize(leak.bytes_per_step()), " per step by ", leak.stack().summary(),
           ", ", FormatSize(leak.left_bytes()), " in total; it grows in ",
           leak.every_steps() > 1 ? StrCat("one of ", leak.every_steps(), " steps")
                                  : StrCat(FormatCount(leak.grown_steps()), " of ",
                                           FormatCount(leak.steps(), "step")));
    std::string first;
    for (const int64_t event : leak.events()) {
      StrAppend(&first, first.empty() ? "allocated at event " : ", ", FormatCount(event));
    }
    AddRow(out, "", first);
    return;
  }
  int shown = 0;
  for (const proto::SiteGrowth& site : steps.sites()) {
    if (site.grown_steps() < kMinGrownSteps) continue;
    if (shown++ == kMaxSites) break;
    AddRow(out, shown == 1 ? "grew, but no leak" : "", FormatSize(site.grown_bytes()), " in ",
           FormatCount(site.grown_steps(), "step"), " by ", site.stack().summary());
  }
}

void RenderHistory(const proto::LoopReport& loop, std::string* out) {
  if (loop.history_size() < 2) return;
  // The width stays below a terminal's 80 columns.
  const int together = (loop.history_size() + kMaxColumns - 1) / kMaxColumns;
  const HistoryPoint& first = loop.history(0);
  StrAppend(out, "\n  over time, ",
            FormatCount((first.last_event() - first.first_event() + 1) * together, "event"),
            " per column, with the maximum of each\n");
  const struct {
    std::string_view label;
    int64_t (*value)(const HistoryPoint&);
  } kRows[] = {
      {"reserved", [](const HistoryPoint& p) { return p.highest_reserved_bytes(); }},
      {"allocated", [](const HistoryPoint& p) { return p.highest_allocated_bytes(); }},
      {"inactive split", [](const HistoryPoint& p) { return p.highest_inactive_split_bytes(); }},
  };
  int64_t highest = 0;
  for (const HistoryPoint& point : loop.history()) {
    highest = std::max(highest, point.highest_reserved_bytes());
  }
  for (const auto& row : kRows) {
    std::vector<int64_t> values;
    int64_t low = row.value(first);
    for (int i = 0; i < loop.history_size(); ++i) {
      const int64_t value = row.value(loop.history(i));
      low = std::min(low, value);
      if (i % together == 0) values.push_back(value);
      values.back() = std::max(values.back(), value);
    }
    const int64_t high = *absl::c_max_element(values);
    AddRow(out, row.label, "|", Sparkline(values, highest), "| ", FormatSize(low), " to ",
           FormatSize(high));
  }
}

// Appends where the replay diverges to the history.
void RenderDivergence(const proto::LoopReport& loop, std::string* out) {
  if (!loop.diverged()) return;
  AddRow(out, "replay", "exact until event ", FormatCount(loop.exact_until_event()),
         "; from there on the figures come from the simulation (memreplay replay reports why)");
}

void RenderHolders(const proto::LoopReport& loop, std::string* out) {
  if (loop.holders_size() == 0) return;
  StrAppend(out,
            "\n  streams and pools at the peak of reserved memory; cached memory cannot move "
            "between them\n");
  std::vector<const proto::LoopReport::Holder*> holders;
  for (const auto& holder : loop.holders()) holders.push_back(&holder);
  absl::c_stable_sort(holders, [](const auto* a, const auto* b) {
    return a->reserved_bytes() > b->reserved_bytes();
  });
  int shown = 0;
  for (const auto* holder : holders) {
    if (shown++ == kMaxHolders) {
      AddRow(out, "", "and ", holders.size() - kMaxHolders, " more");
      break;
    }
    AddRow(out, StreamName(holder->stream()), PoolName(holder->segment_pool_id()), ": ",
           FormatSize(holder->reserved_bytes()), ", ",
           FormatSize(holder->reserved_bytes() - holder->active_bytes()), " of it cached; up to ",
           FormatSize(holder->most_cached_bytes()), " cached, after event ",
           FormatCount(holder->most_cached_event()));
  }
}

void RenderHeldAtPeak(const proto::DeviceReport& device, std::string* out) {
  if (!device.has_held_at_peak()) return;
  const int64_t event = device.held_at_peak().at_event();
  if (event < 0) return;  // nothing is requested: it would equal the end
  RenderHeld(device.held_at_peak(),
             StrCat("live at the peak of requested memory, event ", FormatCount(event)), out);
}

void RenderStreams(const proto::LoopReport& loop, std::string* out) {
  if (!loop.several_streams()) return;
  if (loop.peak_reserved_bytes() == 0) {
    AddRow(out, "several streams",
           "their cost is not simulated because the start of the recording is missing");
    return;
  }
  AddRow(out, "several streams", "cost ",
         FormatSize(loop.peak_reserved_bytes() - loop.peak_reserved_one_stream_bytes()),
         ": reserved peaks at ", FormatSize(loop.peak_reserved_bytes()), ", on one stream at ",
         FormatSize(loop.peak_reserved_one_stream_bytes()), " (both simulated)");
  if (loop.merged_streams_size() < 2) return;
  for (const auto& merged : loop.merged_streams()) {
    AddRow(out, "", StreamName(merged.stream()), " costs ", FormatSize(merged.cost_bytes()),
           ": with its work on ", StreamName(loop.main_stream()),
           " and the other streams unchanged, reserved peaks at ",
           FormatSize(merged.peak_reserved_bytes()));
  }
}

void RenderErrorBars(const proto::DeviceReport& device, std::string* out) {
  const proto::LoopReport& loop = device.loop();
  if (!loop.peaks_are_lower_bounds() || loop.error_bars_size() == 0) return;
  StrAppend(
      out,
      "\n  error bars of the figures since the recording began (nothing before it is counted)\n");
  for (const auto& bar : loop.error_bars()) {
    std::string text = FormatSize(bar.low_bytes());
    if (!bar.has_high()) {
      text = StrCat("at least ", text, ": ", bar.reason());
    } else if (bar.low_bytes() == bar.high_bytes()) {
      StrAppend(&text, ", exact");
    } else {
      StrAppend(&text, " to ", FormatSize(bar.high_bytes()), ": ", bar.reason());
    }
    // "peak_reserved_bytes" becomes "peak reserved".
    std::string label = bar.figure().substr(0, bar.figure().rfind('_'));
    absl::c_replace(label, '_', ' ');
    AddRow(out, label, text);
  }
  if (loop.steps().steps() > 0)
    AddRow(out, "growth per step", "exact: it is a difference between recorded states");
  if (loop.peak_live_bytes() > 0) {
    AddRow(out, "history",
           absl::StrFormat(
               "of the %s live at the peak, the recording shows the allocation of %s (%.0f %%)",
               FormatSize(loop.peak_live_bytes()), FormatSize(loop.peak_live_seen_bytes()),
               100.0 * static_cast<double>(loop.peak_live_seen_bytes()) /
                   static_cast<double>(loop.peak_live_bytes())));
  }
}

constexpr size_t kMaxModules = 16;

void Evidence(const proto::Categories& categories, std::string* out) {
  const struct {
    std::string_view name, words;
  } kRows[] = {{"told", "told"},
               {"stack", "by stacks"},
               {"lifetime", "by lifetimes"},
               {"size", "by sizes"},
               {"none", "unknown"}};
  std::string text;
  for (const auto& row : kRows) {
    const auto found = categories.evidence_bytes().find(std::string(row.name));
    if (found == categories.evidence_bytes().end() || categories.peak_bytes() == 0) continue;
    StrAppend(&text, text.empty() ? "" : ", ",
              absl::StrFormat("%.0f %% %s",
                              100.0 * static_cast<double>(found->second) /
                                  static_cast<double>(categories.peak_bytes()),
                              ToAbsl(row.words)));
  }
  AddRow(out, "at the peak", text, categories.told() ? "" : "; nothing was noted by Python");
}

}  // namespace

std::string RenderTimelineText(const proto::DeviceReport& device) {
  std::string out;
  if (device.has_loop()) RenderHistory(device.loop(), &out);
  return out;
}

std::string RenderLoopText(const proto::DeviceReport& device) {
  std::string out;
  if (!device.has_loop() || device.events() == 0) return out;
  RenderHistory(device.loop(), &out);
  RenderDivergence(device.loop(), &out);
  RenderHolders(device.loop(), &out);
  RenderHeldAtPeak(device, &out);
  RenderStreams(device.loop(), &out);
  RenderSteps(device.loop(), &out);
  RenderErrorBars(device, &out);
  return out;
}

void RenderHeld(const proto::Held& held, std::string_view title, std::string* out) {
  const auto& stacks = held.stacks();
  const bool is_known =
      absl::c_any_of(stacks, [](const proto::HeldBytes& row) { return row.stack().depth() > 0; });
  if (!is_known && held.filter().empty()) return;
  std::string heading(title);
  const auto bytes_of = [](const auto& from) {
    return from.bytes() > 0 ? from.bytes() : from.requested_bytes();
  };
  if (!held.filter().empty()) {
    StrAppend(&heading, ", in stacks that contain '", held.filter(),
              "': ", FormatSize(bytes_of(held)), " in ",
              FormatCount(held.allocations(), "allocation"));
  }
  std::vector<HeldRow> rows;
  for (const proto::HeldBytes& row : stacks) {
    rows.push_back({bytes_of(row), row.stack().summary(), row.allocations()});
  }
  Table table = HeldTable(std::move(heading), "stack", rows, bytes_of(held));
  if (held.left_out_stacks() > 0) {
    table.note = StrCat("and ", FormatCount(held.left_out_stacks(), "more stack"));
  }
  // What a filter selects may be nothing.
  if (rows.empty()) StrAppend(out, "\n  ", table.title, "\n");
  AddTable(table, out);
}

std::string RenderCategories(const proto::Categories& categories) {
  std::string out;
  const auto unknown = categories.evidence_bytes().find("none");
  if (unknown != categories.evidence_bytes().end() && unknown->second == categories.peak_bytes()) {
    return out;
  }
  if (categories.peak_bytes() == 0) return out;
  AddTable(PhaseTable(categories), &out);
  Evidence(categories, &out);
  AddTable(ModuleTable(categories, kMaxModules), &out);
  return out;
}

}  // namespace memreplay

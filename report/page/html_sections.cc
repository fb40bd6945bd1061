#include "report/page/html_sections.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "report/page/html.h"
#include "report/table/tables.h"
#include "report/words/answer.h"
#include "report/words/lines.h"
#include "report/words/names.h"
#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

using enum Unit;

constexpr int kMaxFailures = 50;
constexpr int kMaxOoms = 20;
constexpr int kMaxPinned = 20;
constexpr int kMaxFreeLists = 50;
constexpr size_t kMaxModules = 40;

std::string Figure(std::string_view label, std::string_view value, std::string_view more,
                   bool bad = false) {
  return StrCat("<div", bad ? " class=\"bad\"" : "", "><dt>", EscapeHtml(label), "</dt><dd><b>",
                EscapeHtml(value), "</b>",
                more.empty() ? "" : StrCat(" <small>", EscapeHtml(more), "</small>"),
                "</dd></div>\n");
}

std::string Share(int64_t part, int64_t whole) {
  if (whole <= 0) return "0 %";
  return absl::StrFormat("%.1f %%", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

// Returns "-" if the release does not keep that statistic.
Cell StatisticCell(const proto::DeviceReport& device, const std::string& name) {
  const auto found = device.statistics().find(name);
  return found == device.statistics().end() ? Cell("-") : Cell(found->second);
}

// Returns the frames of a stack. Several in a row that are not the user's own code, between frames
// that are, fold once more.
std::string FrameItems(const proto::Page& page, const proto::Page::Stack& stack) {
  const auto is_own = [&](int32_t frame) {
    return absl::c_binary_search(page.own_frames(), frame);
  };
  const auto& frames = stack.frames();
  const bool has_own = absl::c_any_of(frames, is_own);
  std::string html;
  for (auto frame = frames.begin(); frame != frames.end();) {
    const auto end = std::find_if(frame, frames.end(), is_own);
    const int64_t folded = has_own ? end - frame : 0;
    if (folded > 1) {
      StrAppend(&html, "<li class=\"folded\"><details><summary>", FormatCount(folded, "frame"),
                " in libraries</summary><ol class=\"frames\">");
    }
    const auto stop = std::max(end, frame + 1);
    for (; frame != stop; ++frame) {
      if (*frame < page.frames_size()) StrAppend(&html, Element("li", page.frames(*frame)));
    }
    if (folded > 1) StrAppend(&html, "</ol></details></li>");
  }
  return html;
}

// Returns the summary, from which the frames unfold.
Cell StackCell(const proto::Page& page, int index) {
  if (index < 0 || index >= page.stacks_size()) return "";
  const proto::Page::Stack& stack = page.stacks(index);
  Cell cell(stack.summary());
  if (stack.frames_size() < 2) return cell;
  cell.html = StrCat("<details><summary>", EscapeHtml(stack.summary()),
                     "</summary><ol class=\"frames\">", FrameItems(page, stack), "</ol></details>");
  return cell;
}

template <typename... Pieces>
std::string Note(const Pieces&... pieces) {
  return StrCat(Element("p class=\"note\"", pieces...), "\n");
}

std::string Holdings(const proto::DeviceReport& device) {
  const proto::Page::Holdings& holdings = device.page().holdings();
  if (holdings.requested_bytes() == 0) return "";
  const int64_t all = holdings.requested_bytes();
  std::string html =
      Note(FormatSize(all), " is live at ", PositionNoun(device.inventory().is_program()), " ",
           FormatCount(holdings.position()), ", the peak of requested memory.");
  std::vector<HeldRow> categories, stacks;
  for (const auto& row : holdings.categories()) {
    categories.push_back({row.requested_bytes(), CategoryNoun(row.category()), row.allocations()});
  }
  StrAppend(&html, HtmlTable(HeldTable("by category", "category", categories, all)));
  // If stacks consist of nothing but a tag, the second table says nothing new.
  if (holdings.categories_size() >= holdings.stacks_size()) return html;
  for (const auto& row : holdings.stacks()) {
    stacks.push_back(
        {row.requested_bytes(), StackCell(device.page(), row.stack()), row.allocations()});
  }
  StrAppend(&html, HtmlTable(HeldTable("by stack", "stack", stacks, all)));
  if (holdings.left_out_stacks() > 0) {
    StrAppend(&html, Note("and ", FormatCount(holdings.left_out_stacks(), "more stack"), " of ",
                          FormatSize(holdings.left_out_bytes()), " in total"));
  }
  return html;
}

std::string GroupTable(const proto::Page::BlockMap& map) {
  const bool is_peak = map.moment() == proto::Page::BlockMap::peak;
  Table table{is_peak ? "segments at the peak of reserved memory" : "segments at the end",
              {{"pool"},
               {"kind"},
               {"stream"},
               {"segments", kCount},
               {"reserved", kSize},
               {"active", kSize},
               {"free", kSize},
               {"largest free", kSize}}};
  for (const proto::Page::Group& group : map.groups()) {
    table.Add({PoolName(group.segment_pool_id()), SegmentTypeName(group.segment_type()),
               StreamName(group.stream()), group.segments(), group.reserved_bytes(),
               group.active_bytes(), group.reserved_bytes() - group.active_bytes(),
               group.largest_free_bytes()});
  }
  return HtmlTable(table);
}

std::string FragmentationTables(const proto::DeviceReport& device) {
  if (!device.has_fragmentation()) return "";
  const proto::Fragmentation& f = device.fragmentation();
  std::string html = HtmlTable(FragmentationTable(device));
  if (const std::string text = UnservableText(f); !text.empty()) {
    StrAppend(&html, Note(text, "."));
  }
  StrAppend(&html, HtmlTable(FreeTable(f.largest_free(), kMaxFreeLists)));
  for (const proto::Page::BlockMap& map : device.page().maps()) StrAppend(&html, GroupTable(map));
  return html;
}

std::string Streams(const proto::Inventory& inventory) {
  const auto used =
      absl::c_count_if(inventory.streams(), [](const auto& stream) { return stream.allocs() > 0; });
  return used < 2 ? "" : Section(StreamTable(inventory));
}

// Returns whether memory that no tensor uses is what matters: memory ran out because of it, or a
// tenth is unused.
bool IsFragmented(const proto::DeviceReport& device) {
  if (device.oom().verdict() == proto::Verdict::fragmentation) return true;
  return device.fragmentation().reserved_minus_active_bytes() * 10 >= device.peak_reserved_bytes();
}

std::string Phases(const proto::DeviceReport& device) {
  const proto::Categories& categories = device.categories();
  const Table table = PhaseTable(categories);
  if (table.columns.size() < 4) return "";  // phase, a single category, sum
  return StrCat(HtmlTable(table),
                categories.told() || device.inventory().is_program()
                    ? ""
                    : Note("Categories are inferred from stacks, lifetimes and sizes; "
                           "memreplay inspect --deep reports how each is known."));
}

std::string Loop(const proto::DeviceReport& device) {
  const proto::StepSummary& steps = device.loop().steps();
  if (steps.steps() == 0) return "";
  std::string html = Note(
      FormatCount(steps.steps(), "step"), " of ",
      FormatCount(steps.allocations_per_step(), "allocation"), ", found by ",
      StepSourceName(steps.source()), steps.name().empty() ? "" : StrCat(" (", steps.name(), ")"),
      "; each leaves ", FormatSizeChange(steps.growth_bytes_per_step()), " behind and allocates ",
      FormatSize(steps.swing_bytes()), " while it runs.",
      steps.may_be_layers() ? " These may be the layers of one pass." : "");
  if (device.loop().has_leak()) {
    const proto::LeakEvidence& leak = device.loop().leak();
    StrAppend(&html,
              StrCat(Element("p class=\"fault\"", "Leak: ", FormatSize(leak.bytes_per_step()),
                             " per step by ", leak.stack().summary(), ", ",
                             FormatSize(leak.left_bytes()), " in total."),
                     "\n"));
  }
  return html;
}

// Returns settings, release and notes.
std::string Circumstances(const proto::DeviceReport& device) {
  std::string html = Note("Settings: ", SettingsText(device), "; PyTorch ",
                          device.torch().release(), " (", device.torch().why(), ").");
  if (device.mode() == proto::Mode::as_recorded && device.exact_until_event() < device.events()) {
    StrAppend(&html, Note("Exact up to event ", FormatCount(device.exact_until_event()), ": ",
                          device.exactness_reason(), "."));
  }
  if (device.fidelity().compared_events() == 0) {
    StrAppend(&html, Note(device.inventory().is_program()
                              ? "A schedule: there is no recording to compare with."
                          : device.mode() == proto::Mode::what_if
                              ? "The settings are not those of the recording, so there is nothing "
                                "to compare with."
                              : "The file has no events to compare with."));
  }
  if (device.loop().peaks_are_lower_bounds()) {
    StrAppend(&html, Note("Memory was already in use when the recording began, so peaks are those "
                          "since then. memreplay inspect --deep reports how far off they may be."));
  }
  if (device.has_control()) {
    StrAppend(&html, Note("Check: ", ControlSentence(device.control()), "."));
  }
  for (const std::string& note : device.notes()) StrAppend(&html, Note(note));
  return html;
}

bool RunsOut(const proto::OutOfMemory& oom) { return oom.verdict() != proto::Verdict::none; }

// Returns the table with what helps first.
std::string Help(const proto::OutOfMemory& oom) {
  Table table = HelpTable(oom);
  std::stable_partition(table.rows.begin(), table.rows.end(),
                        [](const Table::Row& row) { return row.tone != Tone::kBad; });
  return HtmlTable(table);
}

// Returns the table, each change with its colour in the chart.
std::string Serving(const proto::DeviceReport& device) {
  Table table = ServingTable(device.advice());
  int curve = device.page().others_size();
  for (Table::Row& row : table.rows) {
    row.cells[0].html = StrCat(Swatch(curve++), EscapeHtml(row.cells[0].words));
  }
  return HtmlTable(table);
}

std::string OomTables(const proto::DeviceReport& device) {
  const proto::OutOfMemory& oom = device.oom();
  if (!RunsOut(oom)) return "";
  std::string html = StrCat("<div class=\"columns\"><div>", Help(oom), "</div><div>",
                            HtmlTable(UseTable(oom.use())), "</div></div>\n", Serving(device));
  if (oom.verdict() == proto::Verdict::fragmentation) {
    StrAppend(&html, HtmlTable(PinnedTable(oom, kMaxPinned)));
  }
  for (const std::string& note : oom.notes()) StrAppend(&html, Element("p class=\"note\"", note));
  return html;
}

std::string Ooms(const proto::DeviceReport& device) {
  const proto::Page::Curve& curve = device.page().curve();
  Table table{"requests that ran out of memory", {{}, {"size", kSize}}};
  for (int i = 0; i < std::min(curve.oom_position_size(), kMaxOoms); ++i) {
    const int64_t position = curve.oom_position(i);
    table.Add({Cell(StrCat("at ", PositionNoun(device.inventory().is_program()), " ",
                           FormatCount(position)),
                    position, 0),
               curve.oom_bytes(i)});
  }
  const int64_t more = curve.oom_position_size() - std::ssize(table.rows) + curve.left_out_ooms();
  if (more > 0) table.note = StrCat("and ", FormatCount(more), " more");
  return StrCat(OomTables(device), HtmlTable(table));
}

}  // namespace

proto::Diagnosis Diagnosis(const proto::DeviceReport& device) {
  proto::Diagnosis said = device.diagnosis();
  if (said.what().empty()) {
    said.set_what(device.mode() == proto::Mode::what_if
                      ? Sentence(AnswerSentence(device))
                      : StrCat("Peak ", FormatSize(device.peak_requested_bytes()), " requested, ",
                               FormatSize(device.peak_reserved_bytes()), " reserved."));
  }
  return said;
}

std::string OomHeadline(const proto::OutOfMemory& oom) {
  if (!RunsOut(oom)) return "";
  return StrCat(VerdictName(oom.verdict()), ": ", oom.sentence());
}

std::string KeyFigures(const proto::DeviceReport& device) {
  const int64_t reserved = device.peak_reserved_bytes();
  std::string html =
      StrCat("<dl class=\"figures\">\n", Figure("peak reserved", FormatSize(reserved), ""));
  if (device.has_fragmentation()) {
    const int64_t unused = device.fragmentation().reserved_minus_active_bytes();
    StrAppend(&html, Figure("active then", FormatSize(reserved - unused), ""),
              Figure("unused at the peak", FormatSize(unused), Share(unused, reserved)));
  }
  if (device.ooms() > 0 || device.recorded().ooms() > 0) {
    StrAppend(&html, Figure("out of memory", FormatCount(device.ooms(), "time"),
                            device.recorded().ooms() > 0 && device.mode() == proto::Mode::what_if
                                ? StrCat("recorded: ", FormatCount(device.recorded().ooms()))
                                : "",
                            device.ooms() > 0));
  }
  return StrCat(
      html, "</dl>\n<p class=\"note\">", Element("code", SettingsText(device)),
      EscapeHtml(StrCat(
          "; PyTorch ", device.torch().release(), "; ",
          FormatCount(device.events(), PositionNoun(device.inventory().is_program())),
          device.mode() == proto::Mode::as_recorded ? StrCat("; ", AnswerSentence(device)) : "",
          ".")),
      "</p>\n");
}

std::string ComparisonTable(const proto::DeviceReport& device) {
  if (device.page().others().empty()) return "";
  Table table{"before and after",
              {{"settings"},
               {"peak reserved", kSize},
               {"change", kLabel},
               {"peak allocated", kSize},
               {"unused at the peak", kSize},
               {"inactive split", kSize},
               {"out of memory", kCount},
               {"retries", kCount},
               {"driver calls", kCount}}};
  int others = 0;
  const auto add = [&](const proto::DeviceReport& run, bool is_base) {
    const int64_t change = run.peak_reserved_bytes() - device.peak_reserved_bytes();
    const bool sampled = run.has_fragmentation();
    Cell settings("");
    settings.html = StrCat("<span class=\"nowrap\">",
                           is_base ? "<span class=\"swatch reserved\"></span>" : Swatch(others++),
                           Element("code", SettingsName(run.conf())), "</span>");
    table.Add({std::move(settings), run.peak_reserved_bytes(),
               is_base ? ""
                       : StrCat(FormatSizeChange(change),
                                PercentChange(change, device.peak_reserved_bytes())),
               run.peak_allocated_bytes(),
               sampled ? Cell(run.fragmentation().reserved_minus_active_bytes()) : "-",
               sampled ? Cell(run.fragmentation().inactive_split_bytes()) : "-", run.ooms(),
               StatisticCell(run, "num_alloc_retries"), run.device_calls()});
  };
  add(device, true);
  for (const proto::Page::Other& other : device.page().others()) add(other.report(), false);
  return HtmlTable(table);
}

std::string SettingsSearch(const proto::DeviceReport& device) {
  if (!device.has_sweep() || device.sweep().rows().empty()) return "";
  const proto::Sweep& sweep = device.sweep();
  std::string html = StrCat("<section class=\"search\">", Element("h3", "Settings searched"), "\n");
  Table table = SweepTable(sweep);
  table.title = StrCat("the best of ", FormatCount(sweep.rows_size()));
  StrAppend(&html, HtmlTable(table));
  for (const auto& suggestion : sweep.suggestions()) {
    std::string lines;
    for (const std::string& line : suggestion.lines()) StrAppend(&lines, line, "\n");
    StrAppend(&html, Element("pre class=\"paste\"", lines),
              Element("p class=\"note\"", "cost: ", suggestion.cost()), "\n");
    for (const std::string& risk : suggestion.risks()) {
      StrAppend(&html, Element("p class=\"note\"", "risk: ", risk), "\n");
    }
  }
  return StrCat(html, "</section>\n");
}

std::string OutOfMemory(const proto::DeviceReport& device) {
  return Section("Out of memory", Ooms(device));
}

std::string Tables(const proto::DeviceReport& device) {
  const std::string holdings = Section("What held the memory", Holdings(device));
  return StrCat(
      // The charts show the same for any moment.
      holdings.empty() ? "" : StrCat("<noscript>", holdings, "</noscript>\n"),
      Section("Where each phase peaks", Phases(device)),
      Section(ModuleTable(device.categories(), kMaxModules)),
      IsFragmented(device) ? Section("Fragmentation", FragmentationTables(device)) : "",
      Section("The loop", Loop(device)), Streams(device.inventory()),
      Section(FailureTable(device, kMaxFailures)), Section(DiagnosticsTable(device)),
      Section("About this run", Circumstances(device)));
}

}  // namespace memreplay

#include "report/page/html_sections.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "report/page/html.h"
#include "report/page/html_oom.h"
#include "report/words/answer.h"
#include "report/words/category_columns.h"
#include "report/words/lines.h"
#include "report/words/memory_use.h"
#include "report/words/sizes.h"
#include "report/words/verdict.h"
#include "trace/value/bounded.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

using Rows = std::vector<std::vector<Cell>>;

constexpr int kMaxFailures = 50;
constexpr int kMaxOoms = 20;
constexpr int kMaxModules = 40;
constexpr int kMaxModuleDepth = 4;
constexpr int64_t kMinModuleShare = 50;  // of the peak, one in so many: smaller ones are left out

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
  return found == device.statistics().end() ? NumberCell("-") : CountCell(found->second);
}

// Returns the frames of a stack. Several in a row that are not the user's own code, between frames
// that are, fold once more.
std::string FrameItems(const proto::Page& page, const proto::Page::Stack& stack) {
  const auto is_own = [&](int32_t frame) {
    return std::binary_search(page.own_frames().begin(), page.own_frames().end(), frame);
  };
  const auto& frames = stack.frames();
  const bool has_own = std::any_of(frames.begin(), frames.end(), is_own);
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
  if (index < 0 || index >= page.stacks_size()) return TextCell("");
  const proto::Page::Stack& stack = page.stacks(index);
  if (stack.frames_size() < 2) return TextCell(stack.summary());
  std::string html =
      StrCat("<details><summary>", EscapeHtml(stack.summary()), "</summary><ol class=\"frames\">");
  return {.html = StrCat(html, FrameItems(page, stack), "</ol></details>")};
}

std::string Section(std::string_view title, const std::string& html) {
  if (html.empty()) return "";
  return StrCat("<section>", Element("h3", title), "\n", html, "</section>\n");
}

std::string Note(std::string_view text) { return StrCat(Element("p class=\"note\"", text), "\n"); }

std::string Holdings(const proto::DeviceReport& device) {
  const proto::Page::Holdings& holdings = device.page().holdings();
  if (holdings.requested_bytes() == 0) return "";
  const int64_t all = holdings.requested_bytes();
  std::string html =
      Note(StrCat(FormatSize(all), " is live at ", PositionNoun(device.inventory().is_program()),
                  " ", FormatCount(holdings.position()), ", the peak of requested memory."));
  Rows rows;
  for (const auto& row : holdings.categories()) {
    rows.push_back({TextCell(row.category()), SizeCell(row.requested_bytes()),
                    NumberCell(Share(row.requested_bytes(), all)), CountCell(row.allocations()),
                    BarCell(row.requested_bytes(), all)});
  }
  StrAppend(&html, Table("By category", {"category", "live", "share", "allocations", ""}, rows));
  // If stacks consist of nothing but a tag, the second table says nothing new.
  if (holdings.categories_size() >= holdings.stacks_size()) return html;
  rows.clear();
  for (const auto& row : holdings.stacks()) {
    rows.push_back({SizeCell(row.requested_bytes()), NumberCell(Share(row.requested_bytes(), all)),
                    CountCell(row.allocations()), BarCell(row.requested_bytes(), all),
                    StackCell(device.page(), row.stack())});
  }
  StrAppend(&html, Table("By stack", {"live", "share", "allocations", "", "stack"}, rows));
  if (holdings.left_out_stacks() > 0) {
    StrAppend(&html, Note(StrCat("and ", FormatCount(holdings.left_out_stacks(), "more stack"),
                                 " of ", FormatSize(holdings.left_out_bytes()), " in total")));
  }
  return html;
}

std::string GroupTable(const proto::Page::BlockMap& map) {
  Rows rows;
  for (const proto::Page::Group& group : map.groups()) {
    rows.push_back({TextCell(PoolName(group.segment_pool_id())),
                    TextCell(SegmentTypeName(group.segment_type())),
                    TextCell(StreamName(group.stream())), CountCell(group.segments()),
                    SizeCell(group.reserved_bytes()), SizeCell(group.active_bytes()),
                    SizeCell(group.reserved_bytes() - group.active_bytes()),
                    SizeCell(group.largest_free_bytes())});
  }
  return Table(
      map.moment() == proto::Page::BlockMap::peak ? "Segments at the peak of reserved memory"
                                                  : "Segments at the end",
      {"pool", "kind", "stream", "segments", "reserved", "active", "free", "largest free"}, rows);
}

std::string FragmentationTables(const proto::DeviceReport& device) {
  if (!device.has_fragmentation()) return "";
  const proto::Fragmentation& f = device.fragmentation();
  const auto row = [&](std::string_view name, int64_t bytes, std::string_view meaning) {
    return std::vector<Cell>{TextCell(name), SizeCell(bytes),
                             NumberCell(Share(bytes, device.peak_reserved_bytes())),
                             TextCell(meaning)};
  };
  std::string html =
      Table("At the peak of reserved memory", {"", "bytes", "of reserved", "what it is"},
            {row("reserved - active", f.reserved_minus_active_bytes(),
                 "reserved from the driver but used by no tensor"),
             row("inactive split", f.inactive_split_bytes(),
                 "of that, next to live blocks: the segment cannot be released"),
             row("internal", f.internal_bytes(), "block sizes rounded up beyond the request")});
  if (f.unservable_requests() > 0) {
    StrAppend(&html,
              Note(absl::StrFormat(
                  "%.1f %% of the free bytes are in blocks too small for any of the last %s.",
                  100.0 * f.unservable_share(), FormatCount(f.unservable_requests(), "request"))));
  }
  Rows rows;
  for (const auto& free : f.largest_free()) {
    rows.push_back({TextCell(PoolName(free.segment_pool_id())),
                    TextCell(SegmentTypeName(free.segment_type())),
                    TextCell(StreamName(free.stream())), SizeCell(free.free_bytes()),
                    CountCell(free.free_blocks()), SizeCell(free.bytes())});
  }
  StrAppend(&html,
            Table("Free blocks", {"pool", "kind", "stream", "free", "blocks", "largest"}, rows));
  for (const proto::Page::BlockMap& map : device.page().maps()) StrAppend(&html, GroupTable(map));
  return html;
}

std::string Streams(const proto::DeviceReport& device) {
  Rows rows;
  for (const auto& stream : device.inventory().streams()) {
    if (stream.allocs() == 0) continue;
    rows.push_back({TextCell(StreamName(stream.stream())), CountCell(stream.allocs()),
                    SizeCell(stream.requested_bytes())});
  }
  if (rows.size() < 2) return "";
  return Table("Requests by stream", {"stream", "allocations", "total"}, rows);
}

// Returns whether memory that no tensor uses is what matters: memory ran out because of it, or a
// tenth is unused.
bool IsFragmented(const proto::DeviceReport& device) {
  if (device.oom().verdict() == proto::Verdict::fragmentation) return true;
  return device.fragmentation().reserved_minus_active_bytes() * 10 >= device.peak_reserved_bytes();
}

bool HasStep(const proto::Categories& categories, const proto::Categories::Phase& phase) {
  return phase.name() != "load" && phase.step() > 0 && categories.peak_step() > 0;
}

std::string Phases(const proto::DeviceReport& device) {
  const proto::Categories& categories = device.categories();
  const std::vector<CategoryColumn>& columns = CategoryColumns(true);
  std::vector<std::vector<int64_t>> bytes;
  for (const auto& phase : categories.phases()) {
    bytes.push_back(ByColumn(phase.bytes_by_category(), true));
  }
  std::vector<std::string_view> headings = {"phase", "live"};
  std::vector<size_t> shown;
  for (size_t c = 0; c < columns.size(); ++c) {
    if (std::none_of(bytes.begin(), bytes.end(), [&](const auto& row) { return row[c] != 0; })) {
      continue;
    }
    shown.push_back(c);
    headings.push_back(columns[c].sentence);
  }
  if (shown.size() < 2) return "";
  Rows rows;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const proto::Categories::Phase& phase = categories.phases(static_cast<int>(i));
    std::vector<Cell>& row = rows.emplace_back();
    const bool is_all = categories.phases_size() == 1 && phase.name() == "other";
    row.push_back(PlaceCell(is_all ? "the whole run"
                            : HasStep(categories, phase)
                                ? StrCat(phase.name(), ", step ", phase.step())
                                : phase.name(),
                            phase.event(), 0));
    row.push_back(SizeCell(phase.live_bytes()));
    for (const size_t c : shown) {
      row.push_back(bytes[i][c] == 0 ? NumberCell("") : SizeCell(bytes[i][c]));
    }
  }
  return StrCat(Table("Requested memory where each phase has most", headings, rows),
                categories.told() || device.inventory().is_program()
                    ? ""
                    : Note("Categories are inferred from stacks, lifetimes and sizes; "
                           "memreplay inspect --deep reports how each is known."));
}

std::string Modules(const proto::DeviceReport& device) {
  const proto::Categories& categories = device.categories();
  Rows rows;
  for (const auto& module : categories.modules()) {
    const auto depth = std::count(module.path().begin(), module.path().end(), '.');
    const bool is_small =
        IsLessThanOneIn(kMinModuleShare, module.live_bytes(), categories.peak_bytes());
    if (is_small || depth >= kMaxModuleDepth || std::ssize(rows) >= kMaxModules) continue;
    rows.push_back({TextCell(module.path()), SizeCell(module.live_bytes()),
                    BarCell(module.live_bytes(), categories.peak_bytes()),
                    SizeCell(module.peak_live_bytes())});
  }
  return Table("At the peak of requested memory, with the modules inside",
               {"module", "live", "", "its own peak"}, rows);
}

std::string Loop(const proto::DeviceReport& device) {
  const proto::StepSummary& steps = device.loop().steps();
  if (steps.steps() == 0) return "";
  std::string html = Note(StrCat(
      FormatCount(steps.steps(), "step"), " of ",
      FormatCount(steps.allocations_per_step(), "allocation"), ", found by ",
      StepSourceName(steps.source()), steps.name().empty() ? "" : StrCat(" (", steps.name(), ")"),
      "; each leaves ", FormatSizeChange(steps.growth_bytes_per_step()), " behind and allocates ",
      FormatSize(steps.swing_bytes()), " while it runs.",
      steps.may_be_layers() ? " These may be the layers of one pass." : ""));
  if (device.loop().has_leak()) {
    const proto::LeakEvidence& leak = device.loop().leak();
    StrAppend(&html, StrCat(Element("p class=\"fault\"",
                                    StrCat("Leak: ", FormatSize(leak.bytes_per_step()),
                                           " per step by ", leak.stack().summary(), ", ",
                                           FormatSize(leak.left_bytes()), " in total.")),
                            "\n"));
  }
  return html;
}

// Returns settings, release and notes.
std::string Circumstances(const proto::DeviceReport& device) {
  std::string html = Note(StrCat("Settings: ", SettingsText(device), "; PyTorch ",
                                 device.torch().release(), " (", device.torch().why(), ")."));
  if (device.mode() == proto::Mode::as_recorded && device.exact_until_event() < device.events()) {
    StrAppend(&html, Note(StrCat("Exact up to event ", FormatCount(device.exact_until_event()),
                                 ": ", device.exactness_reason(), ".")));
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
    StrAppend(&html, Note(StrCat("Check: ", ControlSentence(device.control()), ".")));
  }
  for (const std::string& note : device.notes()) StrAppend(&html, Note(note));
  return html;
}

std::string Ooms(const proto::DeviceReport& device) {
  const proto::Page::Curve& curve = device.page().curve();
  Rows rows;
  for (int i = 0; i < std::min(curve.oom_position_size(), kMaxOoms); ++i) {
    const int64_t position = curve.oom_position(i);
    rows.push_back({PlaceCell(StrCat("at ", PositionNoun(device.inventory().is_program()), " ",
                                     FormatCount(position)),
                              position, 0),
                    SizeCell(curve.oom_bytes(i))});
  }
  std::string html = OomTables(device);
  if (rows.empty()) return html;
  StrAppend(&html, Table("Requests that ran out of memory", {"", "size"}, rows));
  const int64_t more = curve.oom_position_size() - std::ssize(rows) + curve.left_out_ooms();
  if (more > 0) StrAppend(&html, Note(StrCat("and ", FormatCount(more), " more")));
  return html;
}

std::string Failures(const proto::DeviceReport& device) {
  Rows rows;
  for (const proto::RequestFailure& failure : device.failures()) {
    if (std::ssize(rows) == kMaxFailures) break;
    rows.push_back({CountCell(failure.request()), TextCell(failure.message())});
  }
  std::string html = Table("Requests that raise an exception", {"request", "message"}, rows);
  if (device.failures_size() > kMaxFailures) {
    StrAppend(&html,
              Note(StrCat("and ", FormatCount(device.failures_size() - kMaxFailures), " more")));
  }
  return html;
}

std::string DiagnosticsTable(const proto::DeviceReport& device) {
  Rows rows;
  for (const proto::Diagnostic& diagnostic : device.diagnostics()) {
    std::string where;
    for (const auto& place : diagnostic.places()) {
      StrAppend(&where, where.empty() ? "" : ", ", FormatCount(place.position()),
                place.detail().empty() ? "" : StrCat(" [", place.detail(), "]"));
    }
    rows.push_back({TextCell(SeverityName(diagnostic.severity())), CountCell(diagnostic.count()),
                    TextCell(diagnostic.sentence()), TextCell(where)});
  }
  return Table("Shortcomings of the file", {"severity", "times", "what", "first at"}, rows);
}

}  // namespace

std::string Diagnosis(const proto::DeviceReport& device) {
  if (!device.diagnosis().empty()) return device.diagnosis();
  if (device.mode() == proto::Mode::what_if) return Sentence(AnswerSentence(device));
  return StrCat("Peak ", FormatSize(device.peak_requested_bytes()), " requested, ",
                FormatSize(device.peak_reserved_bytes()), " reserved.");
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
  Rows rows;
  int others = 0;
  const auto add = [&](const proto::DeviceReport& run, bool is_base) {
    const int64_t change = run.peak_reserved_bytes() - device.peak_reserved_bytes();
    const bool sampled = run.has_fragmentation();
    rows.push_back(
        {{.html = StrCat("<span class=\"nowrap\">",
                         is_base ? "<span class=\"swatch reserved\"></span>" : Swatch(others++),
                         Element("code", SettingsName(run.conf())), "</span>")},
         SizeCell(run.peak_reserved_bytes()),
         NumberCell(is_base ? ""
                            : StrCat(FormatSizeChange(change),
                                     PercentChange(change, device.peak_reserved_bytes()))),
         SizeCell(run.peak_allocated_bytes()),
         sampled ? SizeCell(run.fragmentation().reserved_minus_active_bytes()) : NumberCell("-"),
         sampled ? SizeCell(run.fragmentation().inactive_split_bytes()) : NumberCell("-"),
         CountCell(run.ooms()),
         StatisticCell(run, "num_alloc_retries"),
         CountCell(run.device_calls())});
  };
  add(device, true);
  for (const proto::Page::Other& other : device.page().others()) add(other.report(), false);
  return Table("Before and after",
               {"settings", "peak reserved", "change", "peak allocated", "unused at the peak",
                "inactive split", "out of memory", "retries", "driver calls"},
               rows);
}

std::string OutOfMemory(const proto::DeviceReport& device) {
  return Section("Out of memory", Ooms(device));
}

std::string Tables(const proto::DeviceReport& device) {
  const std::string holdings = Section("What held the memory", Holdings(device));
  return StrCat(
      // The charts show the same for any moment.
      holdings.empty() ? "" : StrCat("<noscript>", holdings, "</noscript>\n"),
      Section("Where each phase peaks", Phases(device)), Section("Modules", Modules(device)),
      IsFragmented(device) ? Section("Fragmentation", FragmentationTables(device)) : "",
      Section("The loop", Loop(device)), Section("Streams", Streams(device)),
      Section("Exceptions", Failures(device)), Section("Diagnostics", DiagnosticsTable(device)),
      Section("About this run", Circumstances(device)));
}

}  // namespace memreplay

#include "report/page/html_oom.h"

#include <string_view>
#include <vector>

#include "absl/strings/str_join.h"
#include "report/page/html.h"
#include "report/words/lines.h"
#include "report/words/memory_use.h"
#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

using Rows = std::vector<std::vector<Cell>>;

bool RunsOut(const proto::OutOfMemory& oom) { return oom.verdict() != proto::Verdict::none; }

std::string UseTable(const proto::MemoryUse& use) {
  Rows rows;
  for (const MemoryPart& part : PartsOf(use)) {
    rows.push_back(
        {SizeCell(part.bytes), BarCell(part.bytes, use.capacity_bytes()), TextCell(part.what)});
  }
  return Table("Where the memory is", {"bytes", "", "what it is"}, rows);
}

std::string HelpTable(const proto::OutOfMemory& oom) {
  Rows rows;
  std::vector<std::string> useless;
  for (const proto::Counterfactual& change : oom.counterfactuals()) {
    if (change.survives() || change.served()) {
      rows.push_back({TextCell(ResultOf(change.survives(), change.served())),
                      SizeCell(change.peak_reserved_bytes()), TextCell(change.change())});
    } else {
      useless.push_back(change.change());
    }
  }
  std::string html = Table("What would have helped (each change was simulated)",
                           {"result", "peak reserved", "change"}, rows);
  if (!useless.empty()) {
    StrAppend(&html,
              Element("p class=\"note\"",
                      StrCat("Memory also runs out with: ", absl::StrJoin(useless, "; "), ".")));
  }
  return html;
}

// Returns the change with its colour in the chart, which unfolds to show the lines to write for it.
Cell ChangeCell(const proto::Advice::Row& row, int curve) {
  return {.html = StrCat(
              "<details><summary>", Swatch(curve), EscapeHtml(row.change()), "</summary>",
              Element("pre class=\"paste\"", absl::StrJoin(row.lines(), "\n")), "</details>"),
          .is_long = true};
}

std::string AdviceTable(const proto::DeviceReport& device) {
  Rows rows;
  int curve = device.page().others_size();
  for (const int32_t index : device.advice().serving_rows()) {
    const proto::Advice::Row& row = device.advice().rows(index);
    rows.push_back({ChangeCell(row, curve++), SizeCell(row.peak_reserved_bytes()),
                    SizeCell(row.peak_allocated_bytes()), TextCell(row.cost()),
                    TextCell(row.preserves_text())});
  }
  return Table(StrCat("Changes of the script that would have served it (found by editing the "
                      "recording",
                      device.advice().is_lower_bound() ? "; both peaks are lower bounds)" : ")"),
               {"change", "peak reserved", "peak allocated", "cost", "results"}, rows);
}

std::string PinnedTable(const proto::OutOfMemory& oom) {
  Rows rows;
  for (const proto::PinnedSegment& segment : oom.pinned()) {
    const bool has_pin = segment.pins_size() > 0;
    const proto::PinnedSegment::Pin pin = has_pin ? segment.pins(0) : proto::PinnedSegment::Pin();
    rows.push_back({SizeCell(segment.free_bytes()), SizeCell(segment.total_size()),
                    CountCell(segment.live_blocks()), SizeCell(has_pin ? pin.bytes() : 0),
                    PlaceCell(has_pin ? pin.stack().summary() : "the segment", oom.event_index(),
                              has_pin ? pin.address() : segment.address())});
  }
  return Table(StrCat(FormatSize(oom.pinned_free_bytes()), " is stuck in ",
                      FormatCount(oom.pinned_segments(), "segment"),
                      " because live tensors sit in ", oom.pinned_segments() == 1 ? "it" : "them"),
               {"free", "of", "live blocks", "the largest", "by"}, rows);
}

}  // namespace

std::string OomHeadline(const proto::OutOfMemory& oom) {
  if (!RunsOut(oom)) return "";
  return StrCat(VerdictName(oom.verdict()), ": ", oom.sentence());
}

std::string OomTables(const proto::DeviceReport& device) {
  const proto::OutOfMemory& oom = device.oom();
  if (!RunsOut(oom)) return "";
  std::string html = StrCat("<div class=\"columns\"><div>", HelpTable(oom), "</div><div>",
                            UseTable(oom.use()), "</div></div>\n", AdviceTable(device));
  if (oom.verdict() == proto::Verdict::fragmentation) StrAppend(&html, PinnedTable(oom));
  for (const std::string& note : oom.notes()) StrAppend(&html, Element("p class=\"note\"", note));
  return html;
}

}  // namespace memreplay

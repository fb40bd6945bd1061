#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "report/table/tables.h"
#include "report/words/answer.h"
#include "report/words/memory_use.h"
#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// Returns the error bar: what addresses in the other order change.
std::string OtherOrder(const proto::Counterfactual& answer) {
  std::vector<std::string> changed;
  const std::string_view other =
      ResultOf(answer.other_order_survives(), answer.other_order_served());
  if (other != ResultOf(answer.survives(), answer.served())) changed.emplace_back(other);
  if (answer.kind() == proto::Counterfactual::memory && answer.other_order_survives() &&
      answer.other_order_amount_bytes() != answer.amount_bytes()) {
    changed.push_back(StrCat(FormatSize(answer.other_order_amount_bytes()), " more memory"));
  }
  if (changed.empty()) {
    return OtherOrderText(answer.peak_reserved_bytes(), answer.other_order_peak_reserved_bytes());
  }
  return StrCat("; with addresses in the opposite order: ", absl::StrJoin(changed, ", "));
}

std::string Age(const proto::PinnedSegment::Pin& pin) {
  if (pin.age() < 0) return "allocated before the recording began";
  return StrCat(FormatCount(pin.age(), "event"), " old (event ", FormatCount(pin.event()), ")");
}

}  // namespace

Table UseTable(const proto::MemoryUse& use) {
  Table table{.title = "where the memory is",
              .columns = {{.heading = "bytes", .unit = Unit::kSize, .width = 10},
                          {.unit = Unit::kBar, .whole = use.capacity_bytes()},
                          {.heading = "what it is"}}};
  for (const MemoryPart& part : PartsOf(use)) {
    table.rows.push_back({{part.bytes, part.bytes, part.what}});
  }
  return table;
}

Table HelpTable(const proto::OutOfMemory& oom) {
  Table table{
      .title = "what would have helped (each change was simulated)",
      .columns = {{.heading = "result", .width = -11},
                  {.heading = "change"},
                  {.heading = "peak reserved", .unit = Unit::kSize, .before = "; peak reserved "},
                  {.heading = "in the opposite order", .before = "; "}}};
  for (const proto::Counterfactual& change : oom.counterfactuals()) {
    std::string other = OtherOrder(change);
    other.erase(0, 2);  // "; "
    table.rows.push_back({.cells = {ResultOf(change.survives(), change.served()), change.change(),
                                    change.peak_reserved_bytes(), other},
                          .tone = change.survives() ? Tone::kGood
                                  : change.served() ? Tone::kPlain
                                                    : Tone::kBad});
  }
  return table;
}

Table ServingTable(const proto::Advice& advice) {
  const bool is_bound = advice.is_lower_bound();
  Table table{.title = "would have served it, by editing the recording",
              .columns = {{.heading = "change"},
                          {.heading = is_bound ? "peak reserved, at least" : "peak reserved",
                           .unit = Unit::kSize,
                           .before = is_bound ? ": at least " : ": ",
                           .after = " reserved"},
                          {.heading = "to spare",
                           .unit = Unit::kSize,
                           .before = ", ",
                           .after = " to spare",
                           .medium = Medium::kTerminal},
                          {.heading = is_bound ? "peak allocated, at least" : "peak allocated",
                           .unit = Unit::kSize,
                           .medium = Medium::kPage},
                          {.heading = "cost", .before = "; cost: ", .after = "; to write:"},
                          {.heading = "results", .medium = Medium::kPage}}};
  for (const int32_t index : advice.serving_rows()) {
    const proto::Advice::Row& row = advice.rows(index);
    table.rows.push_back({.cells = {row.change(), row.peak_reserved_bytes(),
                                    row.fits() ? Cell(row.spare_bytes()) : Cell(""),
                                    row.peak_allocated_bytes(), row.cost(), row.preserves_text()},
                          .lines = {row.lines().begin(), row.lines().end()}});
  }
  return table;
}

Table PinnedTable(const proto::OutOfMemory& oom, int most) {
  Table table{
      .title = StrCat(FormatSize(oom.pinned_free_bytes()), " is stuck in ",
                      FormatCount(oom.pinned_segments(), "segment"),
                      " because live tensors sit in ", oom.pinned_segments() == 1 ? "it" : "them"),
      .columns = {
          {.heading = "free", .unit = Unit::kSize, .width = 10},
          {.heading = "of", .unit = Unit::kSize, .before = "  free of "},
          {.before = " at ", .medium = Medium::kTerminal},
          {.unit = Unit::kSize, .before = ", pinned by ", .medium = Medium::kTerminal},
          {.heading = "live blocks", .unit = Unit::kCount, .before = " in ", .noun = "block"},
          {.before = "\n              ", .medium = Medium::kTerminal},
          {.heading = "the largest", .unit = Unit::kSize, .medium = Medium::kPage},
          {.heading = "by", .before = " by "},
          {.heading = "age", .before = ", "}}};
  for (const proto::PinnedSegment& segment : oom.pinned()) {
    if (std::ssize(table.rows) == most) break;
    std::vector<Cell> cells = {segment.free_bytes(), segment.total_size(),
                               absl::StrFormat("0x%x", segment.address()), segment.live_bytes(),
                               segment.live_blocks()};
    if (segment.pins_size() > 0) {
      const proto::PinnedSegment::Pin& pin = segment.pins(0);
      cells.emplace_back(
          StrCat(segment.live_blocks() > 1 ? "the largest: " : "", FormatSize(pin.bytes())));
      cells.emplace_back(pin.bytes());
      cells.emplace_back(pin.stack().summary(), oom.event_index(), pin.address());
      cells.emplace_back(Age(pin));
    }
    table.rows.push_back({std::move(cells)});
  }
  return table;
}

}  // namespace memreplay

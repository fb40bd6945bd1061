
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "report/table/tables.h"
#include "report/words/answer.h"
#include "report/words/names.h"
#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

using enum Unit;

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
  Table table{"where the memory is",
              {{"bytes", kSize, "  %10s"}, {"", kBar, "", use.capacity_bytes()}, {"what it is"}}};
  for (const MemoryPart& part : PartsOf(use)) {
    table.Add({part.bytes, part.bytes, part.what});
  }
  return table;
}

Table HelpTable(const proto::OutOfMemory& oom) {
  Table table{"what would have helped (each change was simulated)",
              {{"result", kWords, "  %-11s"},
               {"change"},
               {"peak reserved", kSize, "; peak reserved %s"},
               {"in the opposite order", kWords, "; %s"}}};
  for (const proto::Counterfactual& change : oom.counterfactuals()) {
    std::string other = OtherOrder(change);
    other.erase(0, 2);  // "; "
    table.Add({ResultOf(change.survives(), change.served()), change.change(),
               change.peak_reserved_bytes(), other},
              change.survives() ? Tone::kGood
              : change.served() ? Tone::kPlain
                                : Tone::kBad);
  }
  return table;
}

Table ServingTable(const proto::Advice& advice) {
  const bool is_bound = advice.is_lower_bound();
  Table table{"would have served it, by editing the recording",
              {{"change"},
               {is_bound ? "peak reserved, at least" : "peak reserved", kSize,
                is_bound ? ": at least %s reserved" : ": %s reserved"},
               {"to spare", kSize, ", %s to spare", 0, false},
               {is_bound ? "peak allocated, at least" : "peak allocated", kSize, ""},
               {"cost", kWords, "; cost: %s; to write:"},
               {"results", kWords, ""}}};
  for (const int32_t index : advice.serving_rows()) {
    const proto::Advice::Row& row = advice.rows(index);
    Table::Row& shown = table.Add({row.change(), row.peak_reserved_bytes(),
                                   row.fits() ? Cell(row.spare_bytes()) : "",
                                   row.peak_allocated_bytes(), row.cost(), row.preserves_text()});
    shown.lines = {row.lines().begin(), row.lines().end()};
  }
  return table;
}

Table PinnedTable(const proto::OutOfMemory& oom, int most) {
  Table table{StrCat(FormatSize(oom.pinned_free_bytes()), " is stuck in ",
                     FormatCount(oom.pinned_segments(), "segment"), " because live tensors sit in ",
                     oom.pinned_segments() == 1 ? "it" : "them"),
              {{"free", kSize, "  %10s"},
               {"of", kSize, "  free of %s"},
               {"", kWords, " at %s", 0, false},
               {"", kSize, ", pinned by %s", 0, false},
               {"live blocks", kCount, " in %s block"},
               {"", kWords, "\n              %s", 0, false},
               {"the largest", kSize, ""},
               {"by", kWords, " by %s"},
               {"age", kWords, ", %s"}}};
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
    table.Add(std::move(cells));
  }
  return table;
}

}  // namespace memreplay

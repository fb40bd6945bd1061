#include <algorithm>
#include <string_view>

#include "absl/strings/str_format.h"
#include "report/table/tables.h"
#include "report/text/render.h"
#include "report/text/render_table.h"
#include "report/words/lines.h"
#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {

void RenderHeld(const proto::Held& held, std::string_view title, std::string* out) {
  const auto& stacks = held.stacks();
  const bool is_known = std::ranges::any_of(
      stacks, [](const proto::HeldBytes& row) { return row.stack().depth() > 0; });
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

namespace {

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

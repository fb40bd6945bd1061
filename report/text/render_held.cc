#include <algorithm>

#include "report/table/tables.h"
#include "report/text/render.h"
#include "report/text/render_table.h"
#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {

void RenderHeld(const proto::Held& held, std::string_view title, std::string* out) {
  const auto& stacks = held.stacks();
  const bool is_known = std::any_of(stacks.begin(), stacks.end(), [](const proto::HeldBytes& row) {
    return row.stack().depth() > 0;
  });
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

}  // namespace memreplay

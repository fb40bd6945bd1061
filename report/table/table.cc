#include "report/table/table.h"

#include "absl/strings/str_format.h"
#include "report/words/sizes.h"

namespace memreplay {

std::string CellText(const TableColumn& column, const Cell& cell) {
  if (!cell.number) return cell.words;
  const int64_t number = *cell.number;
  switch (column.unit) {
    case Unit::kSize:
    case Unit::kExactSize: return FormatSize(number);
    case Unit::kMib: return number == 0 ? "" : FormatSize(number);
    case Unit::kShare:
    case Unit::kBar:
      return column.whole <= 0 ? "0 %"
                               : absl::StrFormat("%.1f %%", 100.0 * static_cast<double>(number) /
                                                                static_cast<double>(column.whole));
    default: return FormatCount(number);
  }
}

}  // namespace memreplay

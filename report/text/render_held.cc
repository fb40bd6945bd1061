#include "report/text/render_held.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "report/words/lines.h"
#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {

void SizeLine(std::string* out, int64_t bytes, std::string_view text) {
  absl::StrAppendFormat(out, "  %10s  %s\n", FormatSize(bytes), ToAbsl(text));
}

void RenderHeld(const proto::Held& held, std::string_view title, std::string* out) {
  const auto& stacks = held.stacks();
  const bool is_known = std::any_of(stacks.begin(), stacks.end(), [](const proto::HeldBytes& row) {
    return row.stack().depth() > 0;
  });
  if (!is_known && held.filter().empty()) return;
  StrAppend(out, "\n  ", title);
  const auto bytes_of = [](const auto& from) {
    return from.bytes() > 0 ? from.bytes() : from.requested_bytes();
  };
  if (!held.filter().empty()) {
    StrAppend(out, ", in stacks that contain '", held.filter(), "': ", FormatSize(bytes_of(held)),
              " in ", FormatCount(held.allocations(), "allocation"));
  }
  StrAppend(out, "\n");
  for (const proto::HeldBytes& row : stacks) {
    SizeLine(out, bytes_of(row),
             StrCat(row.stack().summary(), " in ", FormatCount(row.allocations(), "allocation")));
  }
  if (held.left_out_stacks() > 0) {
    StrAppend(out, "              and ", FormatCount(held.left_out_stacks(), "more stack"), "\n");
  }
}

}  // namespace memreplay

#include <string_view>

#include "absl/strings/str_format.h"
#include "report/table/tables.h"
#include "report/text/render.h"
#include "report/text/render_table.h"
#include "report/words/lines.h"
#include "trace/value/strings.h"

namespace memreplay {
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
  AddRow(out, "at the peak",
         StrCat(text, categories.told() ? "" : "; nothing was noted by Python"));
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

#include "report/text/render_categories.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "report/words/category_columns.h"
#include "report/words/lines.h"
#include "report/words/sizes.h"
#include "trace/value/bounded.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr int kMaxModules = 16;
constexpr int kMaxModuleDepth = 4;
constexpr int64_t kMinShare = 50;  // of the peak, one in so many: smaller modules are left out

double InMib(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

void PhaseTable(const proto::Categories& categories, std::string* out) {
  std::vector<std::vector<int64_t>> rows;
  for (const proto::Categories::Phase& phase : categories.phases()) {
    rows.push_back(ByColumn(phase.bytes_by_category(), true));
  }
  const std::vector<CategoryColumn>& columns = CategoryColumns(true);
  std::vector<bool> is_shown;
  for (size_t c = 0; c < columns.size(); ++c) {
    is_shown.push_back(
        std::any_of(rows.begin(), rows.end(), [&](const auto& row) { return row[c] != 0; }));
  }
  StrAppend(out, "\n  peaks by phase, requested, in MiB\n  ", absl::StrFormat("%-14s", "phase"));
  for (size_t c = 0; c < columns.size(); ++c) {
    if (is_shown[c]) StrAppend(out, absl::StrFormat(" %8s", ToAbsl(columns[c].heading)));
  }
  StrAppend(out, "     live\n");
  for (int i = 0; i < categories.phases_size(); ++i) {
    const proto::Categories::Phase& phase = categories.phases(i);
    const bool has_step = phase.name() != "load" && phase.step() > 0 && categories.peak_step() > 0;
    StrAppend(out, "  ",
              absl::StrFormat("%-14s", has_step ? absl::StrCat(phase.name(), " ", phase.step())
                                                : phase.name()));
    for (size_t c = 0; c < columns.size(); ++c) {
      if (is_shown[c])
        StrAppend(out, absl::StrFormat(" %8.1f", InMib(rows[static_cast<size_t>(i)][c])));
    }
    StrAppend(out, absl::StrFormat(" %8.1f\n", InMib(phase.live_bytes())));
  }
}

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

void Modules(const proto::Categories& categories, std::string* out) {
  std::vector<const proto::Categories::Module*> shown;
  for (const proto::Categories::Module& module : categories.modules()) {
    const auto depth = std::count(module.path().begin(), module.path().end(), '.');
    if (depth < kMaxModuleDepth &&
        !IsLessThanOneIn(kMinShare, module.live_bytes(), categories.peak_bytes())) {
      shown.push_back(&module);
    }
  }
  if (shown.empty()) return;
  StrAppend(out, "\n  modules at the peak, with those inside; their own peaks\n");
  const size_t all = shown.size();
  if (all > kMaxModules) {
    // Show the largest ones, in the order of the tree.
    std::vector<int64_t> sizes;
    for (const auto* module : shown) sizes.push_back(module->live_bytes());
    std::nth_element(sizes.begin(), sizes.begin() + kMaxModules - 1, sizes.end(), std::greater<>());
    const int64_t least = sizes[kMaxModules - 1];
    shown.erase(std::remove_if(shown.begin(), shown.end(),
                               [&](const auto* module) { return module->live_bytes() < least; }),
                shown.end());
    if (shown.size() > 2 * kMaxModules) shown.resize(2 * kMaxModules);
  }
  for (const auto* module : shown) {
    const auto depth =
        static_cast<size_t>(std::count(module->path().begin(), module->path().end(), '.'));
    StrAppend(out, absl::StrFormat(
                       "  %-40s %10s %10s\n", std::string(2 * depth, ' ') + module->path(),
                       FormatSize(module->live_bytes()), FormatSize(module->peak_live_bytes())));
  }
  if (shown.size() < all) StrAppend(out, "  and ", all - shown.size(), " smaller ones\n");
}

}  // namespace

std::string RenderCategories(const proto::Categories& categories) {
  std::string out;
  const auto unknown = categories.evidence_bytes().find("none");
  if (unknown != categories.evidence_bytes().end() && unknown->second == categories.peak_bytes()) {
    return out;
  }
  if (categories.peak_bytes() == 0) return out;
  PhaseTable(categories, &out);
  Evidence(categories, &out);
  Modules(categories, &out);
  return out;
}

}  // namespace memreplay

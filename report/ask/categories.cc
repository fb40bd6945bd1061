#include "report/ask/categories.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "report/words/sizes.h"
#include "report/words/text.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr size_t kMaxLines = 100;

void AddBytes(const BytesByCategory& bytes, google::protobuf::Map<std::string, int64_t>* to) {
  for (size_t c = 0; c < kCategories; ++c) {
    if (bytes[c] == Bytes()) continue;
    (*to)[std::string(CategoryName(static_cast<Category>(c)))] = bytes[c].signed_value();
  }
}

// What holds most in a sentence; parameters and buffers are one there.
std::vector<std::pair<int64_t, std::string>> Shares(const proto::Categories::Phase& phase) {
  std::map<std::string, int64_t> bytes;
  for (size_t c = 0; c < kCategories; ++c) {
    const auto category = static_cast<Category>(c);
    const auto found = phase.bytes_by_category().find(std::string(CategoryName(category)));
    if (found == phase.bytes_by_category().end()) continue;
    bytes[std::string(CategoryNoun(category == Category::kBuffer ? Category::kParameter
                                                                 : category))] += found->second;
  }
  std::vector<std::pair<int64_t, std::string>> shares;
  for (const auto& [noun, amount] : bytes) shares.emplace_back(amount, noun);
  std::stable_sort(shares.begin(), shares.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  return shares;
}

std::string PhaseWords(const proto::Categories& categories) {
  const std::string& phase = categories.peak_phase();
  if (phase == "other" && categories.phases_size() == 1) return "";
  std::string words = phase == "forward"      ? " in the forward pass"
                      : phase == "backward"   ? " in the backward pass"
                      : phase == "optimizer"  ? " in the optimizer's step"
                      : phase == "evaluation" ? " in evaluation or inference"
                      : phase == "load"       ? " before the first pass"
                                              : " between passes";
  if (categories.peak_step() > 0 && phase != "load" && phase != "evaluation" && phase != "other") {
    StrAppend(&words, " of step ", categories.peak_step());
  }
  return words;
}

std::string DiagnosisOf(const proto::Categories& categories) {
  const auto peak = std::find_if(categories.phases().begin(), categories.phases().end(),
                                 [&](const proto::Categories::Phase& phase) {
                                   return phase.name() == categories.peak_phase();
                                 });
  if (peak == categories.phases().end() || categories.peak_bytes() == 0) return "";
  const auto unknown = peak->bytes_by_category().find("unknown");
  if (unknown != peak->bytes_by_category().end() && 2 * unknown->second > categories.peak_bytes()) {
    return "";
  }
  std::string text =
      StrCat("Peak ", FormatSize(categories.peak_bytes()), PhaseWords(categories), ": ");
  const std::vector<std::pair<int64_t, std::string>> shares = Shares(*peak);
  int64_t told = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    const auto& [bytes, noun] = shares[i];
    if (i > 0 && (i == 4 || 50 * bytes < categories.peak_bytes())) break;
    StrAppend(&text, i == 0 ? "" : ", ", FormatSize(bytes), " ", noun);
    told += bytes;
    if (i > 0) continue;
    for (const proto::Categories::Line& line : categories.lines()) {
      // The line that holds most of what holds most, where it is a tenth of it.
      const bool is_of = noun == "parameters"
                             ? line.category() == "parameter"
                             : CategoryOfTag(line.category()) &&
                                   CategoryNoun(*CategoryOfTag(line.category())) == noun;
      if (!is_of || line.category() == "parameter" || 10 * line.live_bytes() < bytes) continue;
      StrAppend(&text, " (", FormatSize(line.live_bytes()), " of them by ", line.line(), ", ",
                FormatCount(line.allocations(), "allocation"), ")");
      break;
    }
  }
  const int64_t rest = categories.peak_bytes() - told;
  if (50 * rest >= categories.peak_bytes())
    StrAppend(&text, ", ", FormatSize(rest), " for the rest");
  return text + ".";
}

}  // namespace

proto::Categories ReportCategories(const Schedule& schedule, StackNames& names) {
  const Meanings meanings = FindMeanings(schedule);
  const CategoryTable table = CategoriesOverTime(schedule, meanings);
  proto::Categories report;
  report.set_told(meanings.is_told);
  for (const CategoryPeak& peak : table.phases) {
    proto::Categories::Phase& phase = *report.add_phases();
    phase.set_name(std::string(PhaseName(peak.phase)));
    phase.set_step(peak.step);
    phase.set_live_bytes(peak.live.signed_value());
    phase.set_event(static_cast<int64_t>(peak.event));
    AddBytes(peak.bytes, phase.mutable_bytes_by_category());
  }
  report.set_peak_bytes(table.peak.live.signed_value());
  report.set_peak_phase(std::string(PhaseName(table.peak.phase)));
  report.set_peak_step(meanings.trains ? table.peak.step : 0);
  report.set_peak_event(static_cast<int64_t>(table.peak.event));
  for (size_t e = 0; e < kEvidences; ++e) {
    if (table.evidence[e] == Bytes()) continue;
    (*report.mutable_evidence_bytes())[std::string(EvidenceName(static_cast<Evidence>(e)))] =
        table.evidence[e].signed_value();
  }
  for (const ModuleUse& use : table.modules) {
    if (use.path.empty() || use.most == Bytes()) continue;
    proto::Categories::Module& module = *report.add_modules();
    module.set_path(CleanText(use.path));
    module.set_live_bytes(use.at_peak.signed_value());
    module.set_peak_live_bytes(use.most.signed_value());
    AddBytes(use.bytes, module.mutable_bytes_by_category());
  }
  std::map<std::pair<Category, std::string>, std::pair<int64_t, int64_t>> lines;
  for (size_t i = 0; i < table.live.size(); ++i) {
    const auto& [id, size] = table.live[i];
    auto& [bytes, count] = lines[{meanings.of[id].category, names.Line(table.stacks[i])}];
    bytes += size.signed_value();
    ++count;
  }
  std::vector<proto::Categories::Line> rows;
  for (const auto& [key, sum] : lines) {
    proto::Categories::Line& row = rows.emplace_back();
    row.set_category(std::string(CategoryName(key.first)));
    row.set_line(CleanText(key.second));
    row.set_live_bytes(sum.first);
    row.set_allocations(sum.second);
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.live_bytes() > b.live_bytes(); });
  if (rows.size() > kMaxLines) rows.resize(kMaxLines);
  for (proto::Categories::Line& row : rows) *report.add_lines() = std::move(row);
  report.set_diagnosis(DiagnosisOf(report));
  return report;
}

}  // namespace memreplay

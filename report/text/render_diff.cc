#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "report/text/render.h"
#include "report/words/answer.h"
#include "report/words/names.h"
#include "report/words/sizes.h"
#include "trace/value/bounded.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

using enum Unit;

constexpr int kMaxStacksShown = 10;

std::string FigureText(const proto::DeviceDiff::Figure& figure, int64_t value) {
  return figure.unit() == proto::DeviceDiff::Figure::bytes ? FormatSize(value) : FormatCount(value);
}

std::string Change(const proto::DeviceDiff::Figure& figure) {
  const int64_t change = figure.b() - figure.a();
  if (change == 0) return "same";
  const std::string text = figure.unit() == proto::DeviceDiff::Figure::bytes
                               ? FormatSizeChange(change)
                               : StrCat(change > 0 ? "+" : "", FormatCount(change));
  return text + PercentChange(change, figure.a());
}

Table ChangeTable(std::string title) {
  return {std::move(title),
          {{"change", kLabel, "  %10s"}, {"A", kSize, "  %10s ->"}, {"B", kSize, " %10s"}, {"of"}}};
}

void AddChange(const auto& change, std::string_view name, Table* table) {
  table->Add({FormatSizeChange(change.b_bytes() - change.a_bytes()), change.a_bytes(),
              change.b_bytes(), name});
}

void RenderSteps(const proto::DeviceDiff::Steps& steps, std::string* out) {
  if (steps.a() == 0 && steps.b() == 0) return;
  absl::StrAppendFormat(out, "\n  steps: %d and %d, with %d and %d allocations each\n", steps.a(),
                        steps.b(), steps.a_allocations_per_step(), steps.b_allocations_per_step());
  Table table{"", {{"", kWords, "  %-22s"}, {"A", kSize, " %10s"}, {"B", kSize, "  %10s"}}};
  table.Add({"growth per step", steps.a_growth_bytes_per_step(), steps.b_growth_bytes_per_step()});
  table.Add({"peak within a step", steps.a_swing_bytes(), steps.b_swing_bytes()});
  AddTable(table, out);
  if (steps.aligned() > 0) {
    StrAppend(out, "  of ", FormatCount(steps.aligned(), "step"), " found in both, ",
              steps.first_difference() < 0
                  ? "each leaves the same amount live"
                  : StrCat("step ", steps.first_difference(),
                           " is the first that leaves a different amount live"),
              "\n");
  }
}

constexpr int kNamedOutliers = 3;

std::string Name(const proto::Job& job, int row) {
  return StrCat(job.rows(row).file(), ", device ", job.rows(row).device());
}

std::string OutlierText(const proto::Job& job) {
  std::string names;
  int outliers = 0;
  for (int i = 0; i < job.rows_size(); ++i) {
    if (!job.rows(i).is_outlier()) continue;
    if (++outliers <= kNamedOutliers) StrAppend(&names, outliers > 1 ? "; " : "", Name(job, i));
  }
  if (outliers == 0) return "no rank stands out";
  return StrCat(outliers == 1 ? "outlier " : "outliers ", names,
                outliers > kNamedOutliers ? StrCat("; ", outliers - kNamedOutliers, " more") : "");
}

std::string DeviceName(const proto::Together::Device& device) {
  return device.device() == 0 ? device.file() : StrCat(device.file(), ", device ", device.device());
}

}  // namespace

Text RenderDiffText(const proto::Diff& diff) {
  Text text(StrCat("A ", diff.a(), "\nB ", diff.b(), "\n"));
  std::string& out = text.text;
  for (const proto::DeviceDiff& device : diff.devices()) {
    const std::string label = StrCat("device ", device.device());
    if (!device.in_a() || !device.in_b()) {
      text.Add({label, StrCat("only in ", device.in_a() ? "A" : "B", "."), Tone::kAnswer});
      continue;
    }
    std::string answer = "all figures are the same";
    for (const auto& figure : device.figures()) {
      if (figure.a() == figure.b()) continue;
      answer = StrCat(figure.name(), " ", FigureText(figure, figure.a()), " -> ",
                      FigureText(figure, figure.b()), ", ", Change(figure));
      break;
    }
    text.Add({label, StrCat(answer, "."), Tone::kAnswer});
    Table table{
        "",
        {{"", kWords, "  %-22s"}, {"A", kLabel, " %10s"}, {"B", kLabel, "  %10s"}, {"change"}},
        true};
    for (const auto& figure : device.figures()) {
      table.Add({figure.name(), FigureText(figure, figure.a()), FigureText(figure, figure.b()),
                 Change(figure)});
    }
    StrAppend(&out, "\n");
    AddTable(table, &out);
    if (device.a_conf() != device.b_conf()) {
      StrAppend(&out, "  settings: '", device.a_conf(), "' -> '", device.b_conf(), "'\n");
    }
    if (device.a_torch() != device.b_torch()) {
      StrAppend(&out, "  torch: ", device.a_torch(), " -> ", device.b_torch(), "\n");
    }
    Table categories = ChangeTable("live at the peak, by category");
    for (const auto& change : device.categories())
      AddChange(change, CategoryNoun(change.category()), &categories);
    AddTable(categories, &out);
    Table stacks = ChangeTable(StrCat(
        "live at the peak, by stack: ", FormatCount(device.changed_stacks(), "stack"), " changed"));
    for (const auto& change : device.stacks()) {
      if (std::ssize(stacks.rows) == kMaxStacksShown) break;
      AddChange(change, change.stack().summary(), &stacks);
    }
    AddTable(stacks, &out);
    RenderSteps(device.steps(), &out);
  }
  return text;
}

Text RenderJobText(const proto::Job& job) {
  Text out;
  if (job.rows_size() < 2) return out;
  const std::string files = FormatCount(job.files(), "file");
  if (job.worst_row() < 0) {
    out.Add({"job", StrCat(files, ", none of which could be analysed."), Tone::kAnswer});
    return out;
  }
  out.Add({"job",
           StrCat(files, job.failed() > 0 ? StrCat(", ", job.failed(), " failed") : "", "; ",
                  ComparedBytes(job.rows(job.worst_row())) == 0
                      ? ""
                      : StrCat("worst ", Name(job, job.worst_row()), "; "),
                  "spread ", FormatSize(job.spread_bytes()), "; ", OutlierText(job), "."),
           Tone::kAnswer});
  // Show the figures of the moment at which memory runs out if every row has a verdict on that.
  const bool is_oom = absl::c_all_of(job.rows(), [](const proto::Job::Row& row) {
    return row.has_verdict() || !row.error().empty();
  });
  Table table{"",
              {{is_oom ? "reserved" : "peak res.", Unit::kSize, "  %10s"},
               {is_oom ? "live" : "peak req.", Unit::kSize, "  %10s"},
               {"events", Unit::kCount, "  %10s"},
               {"ooms", Unit::kCount, "  %5s"},
               {"file"}},
              true};
  std::vector<int> order(static_cast<size_t>(job.rows_size()));
  std::iota(order.begin(), order.end(), 0);
  absl::c_stable_sort(
      order, [&](int a, int b) { return ComparedBytes(job.rows(a)) > ComparedBytes(job.rows(b)); });
  for (const int i : order) {
    const proto::Job::Row& row = job.rows(i);
    if (!row.error().empty()) continue;
    const bool is_worst = i == job.worst_row(), is_odd = row.is_outlier();
    table.Add(
        {row.reserved_bytes(), row.requested_bytes(), row.events(), row.ooms(),
         StrCat(Name(job, i),
                row.verdict() == proto::Verdict::none ? ""
                                                      : StrCat(": ", VerdictPhrase(row.verdict())),
                is_worst ? "  <- worst" : "", is_odd ? "  <- outlier" : "")},
        is_worst || is_odd ? Tone::kBad : Tone::kPlain);
  }
  AddTable(table, &out);
  for (const proto::Job::Row& row : job.rows()) {
    if (!row.error().empty()) out.Add({"failed", row.error()});
  }
  return out;
}

std::string RenderTogether(const proto::Together& together, size_t shown) {
  std::string out = StrCat(FormatCount(together.files(), "file"),
                           together.failed() > 0 ? StrCat(", ", together.failed(), " failed") : "",
                           ", ", FormatCount(together.devices_size(), "device"), ": ");
  if (together.rows().empty()) return out + "no settings are accepted by all of them.\n";
  const proto::Together::Row& best = together.rows(0);
  int64_t now = 0, now_sum = 0, now_ooms = 0;
  for (const proto::Together::Device& device : together.devices()) {
    now = std::max(now, device.peak_reserved_bytes());
    now_sum = BoundedSum(now_sum, device.peak_reserved_bytes());
    now_ooms = BoundedSum(now_ooms, device.ooms());
  }
  absl::StrAppendFormat(
      &out, "best for all: %s, with a peak of %s reserved on the worst device instead of %s",
      SettingsName(best.conf()), FormatSize(best.peak_reserved_bytes()), FormatSize(now));
  absl::StrAppendFormat(&out, "; %s instead of %s in total",
                        FormatSize(best.sum_peak_reserved_bytes()), FormatSize(now_sum));
  if (best.ooms() > 0 || now_ooms > 0) {
    absl::StrAppendFormat(&out, "; OUT OF MEMORY %d times instead of %d", best.ooms(), now_ooms);
  }
  StrAppend(&out, ".\n");
  if (!best.conf().empty()) {
    StrAppend(&out, "    export ", together.variable(), "=", best.conf(), "\n");
  }
  Table rows{"",
             {{"worst", Unit::kSize, "  %10s"},
              {"sum", Unit::kSize, "  %10s"},
              {"ooms", Unit::kCount, "  %5s"},
              {"settings"}},
             true};
  for (int i = 0; i < together.rows_size() && static_cast<size_t>(i) < shown; ++i) {
    const proto::Together::Row& row = together.rows(i);
    rows.Add({row.peak_reserved_bytes(), row.sum_peak_reserved_bytes(), row.ooms(),
              StrCat(SettingsName(row.conf()),
                     " (worst: ", DeviceName(together.devices(row.worst_device())), ")")});
  }
  Table devices{"",
                {{"now", Unit::kSize, "  %10s"},
                 {"together", Unit::kSize, "  %10s"},
                 {"own best", Unit::kSize, "  %10s"},
                 {"file"}},
                true};
  for (int i = 0; i < together.devices_size(); ++i) {
    const proto::Together::Device& device = together.devices(i);
    devices.Add({device.peak_reserved_bytes(), best.device_peak_bytes(i),
                 device.own_best_peak_reserved_bytes(),
                 StrCat(DeviceName(device), device.is_outlier() ? "  <- outlier" : "")});
  }
  for (const Table* table : {&rows, &devices}) {
    StrAppend(&out, "\n");
    AddTable(*table, &out);
  }
  for (const proto::Together::Untried& file : together.untried()) {
    StrAppend(&out, file.file(), ": ", FormatCount(file.confs_size(), "setting"),
              " that may suit all files ", file.confs_size() == 1 ? "was" : "were",
              " not tried on it; --json lists ", file.confs_size() == 1 ? "it" : "them", ".\n");
  }
  return out;
}

}  // namespace memreplay

#include "absl/strings/str_format.h"
#include "report/text/render.h"
#include "report/text/render_table.h"
#include "report/words/answer.h"
#include "report/words/names.h"
#include "report/words/sizes.h"
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
                  ? std::string("each leaves the same amount live")
                  : StrCat("step ", steps.first_difference(),
                           " is the first that leaves a different amount live"),
              "\n");
  }
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

}  // namespace memreplay

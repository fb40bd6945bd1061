#include "report/text/render_diff.h"

#include "absl/strings/str_format.h"
#include "report/words/answer.h"
#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

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

void RenderSteps(const proto::DeviceDiff::Steps& steps, std::string* out) {
  if (steps.a() == 0 && steps.b() == 0) return;
  absl::StrAppendFormat(out, "\n  steps: %d and %d, with %d and %d allocations each\n", steps.a(),
                        steps.b(), steps.a_allocations_per_step(), steps.b_allocations_per_step());
  absl::StrAppendFormat(out, "  %-22s %10s  %10s\n", "growth per step",
                        FormatSize(steps.a_growth_bytes_per_step()),
                        FormatSize(steps.b_growth_bytes_per_step()));
  absl::StrAppendFormat(out, "  %-22s %10s  %10s\n", "peak within a step",
                        FormatSize(steps.a_swing_bytes()), FormatSize(steps.b_swing_bytes()));
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
    absl::StrAppendFormat(&out, "\n  %-22s %10s  %10s  %s\n", "", "A", "B", "change");
    for (const auto& figure : device.figures()) {
      absl::StrAppendFormat(&out, "  %-22s %10s  %10s  %s\n", figure.name(),
                            FigureText(figure, figure.a()), FigureText(figure, figure.b()),
                            Change(figure));
    }
    if (device.a_conf() != device.b_conf()) {
      StrAppend(&out, "  settings: '", device.a_conf(), "' -> '", device.b_conf(), "'\n");
    }
    if (device.a_torch() != device.b_torch()) {
      StrAppend(&out, "  torch: ", device.a_torch(), " -> ", device.b_torch(), "\n");
    }
    if (device.categories_size() > 0) StrAppend(&out, "\n  live at the peak, by category\n");
    for (const auto& change : device.categories()) {
      absl::StrAppendFormat(
          &out, "  %10s  %10s -> %10s  %s\n", FormatSizeChange(change.b_bytes() - change.a_bytes()),
          FormatSize(change.a_bytes()), FormatSize(change.b_bytes()), change.category());
    }
    if (device.stacks_size() > 0) {
      StrAppend(&out,
                "\n  live at the peak, by stack: ", FormatCount(device.changed_stacks(), "stack"),
                " changed\n");
    }
    int shown = 0;
    for (const auto& change : device.stacks()) {
      if (shown++ == kMaxStacksShown) break;
      absl::StrAppendFormat(
          &out, "  %10s  %10s -> %10s  %s\n", FormatSizeChange(change.b_bytes() - change.a_bytes()),
          FormatSize(change.a_bytes()), FormatSize(change.b_bytes()), change.stack().summary());
    }
    RenderSteps(device.steps(), &out);
  }
  return text;
}

}  // namespace memreplay

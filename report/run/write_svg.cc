#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "report/run/run_walk.h"
#include "report/words/sizes.h"
#include "report/words/stack_names.h"
#include "trace/value/strings.h"
#include "trace/value/utf8.h"

namespace memreplay {
namespace {

constexpr int kLeft = 66, kTop = 34, kWidth = 720, kHeight = 300;  // of the plot
constexpr size_t kShown = 12;                                      // lines of code with a colour
constexpr size_t kColumns = kWidth;
// Colours that are distinguishable on paper and by most colour-blind readers; the last is for the
// rest.
constexpr std::array<std::string_view, kShown + 1> kColors = {
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#dd8844",
    "#117755", "#8888cc", "#bb6688", "#99aa55", "#335577", "#bbbbbb"};

std::string Escape(std::string_view text) {
  return absl::StrReplaceAll(ToAbsl(text),
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

// The moment that each column shows, and the maximum reserved in it.
struct Columns {
  std::vector<size_t> moments;
  std::vector<int64_t> active, reserved;
  Usage highest;
  size_t peak = 0;  // moment at which most is active

  Columns(const Schedule& schedule, const RunLog& log)
      : moments(kColumns), active(kColumns, -1), reserved(kColumns, 0) {
    const size_t all = log.kinds.size() + 1;
    RunWalk walk(schedule, log);
    do {
      const Usage& usage = walk.usage();
      for (size_t i = 0; i < kUsageKinds; ++i) {
        if (usage.bytes[i] <= highest.bytes[i]) continue;
        highest.bytes[i] = usage.bytes[i];
        if (i == static_cast<size_t>(UsageKind::kActive)) peak = walk.moment();
      }
      // In a short run, several columns show one moment.
      const size_t first = walk.moment() * kColumns / all;
      const size_t last = std::max(first, (walk.moment() + 1) * kColumns / all - 1);
      for (size_t column = first; column <= last && column < kColumns; ++column) {
        reserved[column] = std::max(reserved[column], usage.reserved().signed_value());
        if (usage.active().signed_value() <= active[column]) continue;
        active[column] = usage.active().signed_value();
        moments[column] = walk.moment();
      }
    } while (walk.Next());
  }
};

// Live bytes by line of code, updated along a walk.
class Lines {
 public:
  Lines(const Schedule& schedule, const RunLog& log) : log_(log) {
    std::map<std::string, size_t> known;
    StackNames stack_names(schedule.trace());
    std::map<uint32_t, size_t> by_stack;
    line_.reserve(log.allocations.size());
    for (const RunLog::Allocation& allocation : log.allocations) {
      auto [stack, is_new] = by_stack.try_emplace(allocation.stack, 0);
      if (is_new) {
        std::string name = TagOf(schedule.trace(), allocation.stack);
        if (name.empty()) name = stack_names.Line(allocation.stack);
        const auto [line, first] = known.try_emplace(name, names.size());
        if (first) names.push_back(name);
        stack->second = line->second;
      }
      line_.push_back(static_cast<uint32_t>(stack->second));
    }
    bytes.resize(names.size());
    for (size_t i = 0; i < log.start_allocations; ++i) Add(static_cast<uint32_t>(i), 1);
  }
  void Follow(const RunWalk& walk) {
    if (walk.kind() == EventKind::kAlloc) Add(walk.allocation(), 1);
    if (walk.kind() == EventKind::kFreeCompleted) Add(walk.allocation(), -1);
  }

  std::vector<std::string> names;
  std::vector<int64_t> bytes;

 private:
  void Add(uint32_t allocation, int64_t sign) {
    bytes[line_[allocation]] += sign * log_.allocations[allocation].block_size.signed_value();
  }
  const RunLog& log_;
  std::vector<uint32_t> line_;
};

// Returns the tops of the areas: for each column, the running sums of the lines in `order`, with
// those from kShown on as one.
std::vector<std::array<int64_t, kShown + 1>> Tops(const Schedule& schedule, const RunLog& log,
                                                  const Columns& columns,
                                                  const std::vector<size_t>& order) {
  std::vector<std::array<int64_t, kShown + 1>> tops(kColumns);
  Lines lines(schedule, log);
  RunWalk walk(schedule, log);
  size_t column = 0;
  do {
    if (walk.moment() > 0) lines.Follow(walk);
    for (; column < kColumns && columns.moments[column] == walk.moment(); ++column) {
      int64_t sum = 0;
      for (size_t i = 0; i < order.size(); ++i) {
        sum += lines.bytes[order[i]];
        tops[column][std::min(i, kShown)] = sum;
      }
      for (size_t i = order.size(); i <= kShown; ++i) tops[column][i] = sum;
    }
  } while (walk.Next());
  return tops;
}

}  // namespace

absl::Status WriteSvg(const Schedule& schedule, const RunLog& log, std::string_view title,
                      ByteSink& sink) {
  const Columns columns(schedule, log);
  Lines at_peak(schedule, log);
  RunWalk walk(schedule, log);
  while (walk.moment() < columns.peak && walk.Next()) at_peak.Follow(walk);
  std::vector<size_t> order(at_peak.names.size());
  std::iota(order.begin(), order.end(), size_t{0});
  absl::c_stable_sort(order,
                      [&](size_t a, size_t b) { return at_peak.bytes[a] > at_peak.bytes[b]; });
  const auto tops = Tops(schedule, log, columns, order);

  const int64_t most = std::max<int64_t>(
      {1, columns.highest.reserved().signed_value(), columns.highest.active().signed_value()});
  const auto y = [&](int64_t bytes) {
    return kTop + kHeight * (1 - static_cast<double>(bytes) / static_cast<double>(most));
  };
  const size_t entries = std::min(order.size(), kShown + 1);
  const int height = kTop + kHeight + 40 + 16 * static_cast<int>((entries + 1) / 2);
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
      "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"11\">\n"
      "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
      "<text x=\"%d\" y=\"18\" font-size=\"13\">%s</text>\n",
      kLeft + kWidth + 14, height, kLeft, Escape(title));
  int64_t step = 1;
  while (most / step > 6) step *= 2;
  for (int64_t tick = 0; tick <= most; tick += step) {
    absl::StrAppendFormat(&svg,
                          "<path d=\"M%d,%.1fh%d\" stroke=\"#dddddd\"/><text x=\"%d\" y=\"%.1f\" "
                          "text-anchor=\"end\">%s</text>\n",
                          kLeft, y(tick), kWidth, kLeft - 6, y(tick) + 4, FormatSize(tick));
  }
  for (size_t i = 0; i < entries; ++i) {
    std::string top, below;
    for (size_t column = 0; column < kColumns; ++column) {
      const int x = kLeft + static_cast<int>(column);
      absl::StrAppendFormat(&top, "L%d,%.1fh1", x, y(tops[column][i]));
      const size_t back = kColumns - 1 - column;
      absl::StrAppendFormat(&below, "L%d,%.1fh-1", kLeft + static_cast<int>(back) + 1,
                            y(i == 0 ? 0 : tops[back][i - 1]));
    }
    absl::StrAppendFormat(&svg, "<path fill=\"%s\" d=\"M%s%sZ\"/>\n", ToAbsl(kColors[i]),
                          top.substr(1), below);
    const int x = kLeft + (i % 2 == 0 ? 0 : kWidth / 2);
    const int row = kTop + kHeight + 44 + 16 * static_cast<int>(i / 2);
    const std::string name = i == kShown ? "others" : at_peak.names[order[i]];
    absl::StrAppendFormat(&svg,
                          "<rect x=\"%d\" y=\"%d\" width=\"10\" height=\"10\" fill=\"%s\"/>"
                          "<text x=\"%d\" y=\"%d\">%s</text>\n",
                          x, row - 9, ToAbsl(kColors[i]), x + 15, row, Escape(CutText(name, 58)));
  }
  std::string line;
  for (size_t column = 0; column < kColumns; ++column) {
    absl::StrAppendFormat(&line, "L%d,%.1fh1", kLeft + static_cast<int>(column),
                          y(columns.reserved[column]));
  }
  absl::StrAppendFormat(&svg,
                        "<path fill=\"none\" stroke=\"#333333\" stroke-width=\"1.2\" d=\"M%s\"/>\n",
                        line.substr(1));
  const size_t last = log.positions.empty() ? 0 : log.positions.back();
  for (int i = 0; i <= 4; ++i) {
    absl::StrAppendFormat(&svg, "<text x=\"%d\" y=\"%d\" text-anchor=\"%s\">%s</text>\n",
                          kLeft + kWidth * i / 4, kTop + kHeight + 16,
                          i == 0   ? "start"
                          : i == 4 ? "end"
                                   : "middle",
                          FormatCount(static_cast<int64_t>(last * static_cast<size_t>(i) / 4)));
  }
  absl::StrAppendFormat(
      &svg, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">peak reserved: %s</text>\n</svg>\n",
      kLeft + kWidth, kTop - 6.0, FormatSize(columns.highest.reserved().signed_value()));
  return sink.Append(svg);
}

}  // namespace memreplay

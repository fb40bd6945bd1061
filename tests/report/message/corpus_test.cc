// Checks texts for the verdict and the first action that each should get: tests/data/messages.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "report/message/amount.h"
#include "report/message/explain.h"
#include "report/text/render.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

struct Case {
  std::string file;
  std::string name;
  std::set<std::string> verdicts;
  std::set<std::string> actions;
  std::string text;
};

std::set<std::string> Names(absl::string_view text) {
  const std::vector<std::string> names =
      absl::StrSplit(absl::StripAsciiWhitespace(text), ',', absl::SkipEmpty());
  return {names.begin(), names.end()};
}

std::vector<Case> ReadCases(const std::string& file) {
  std::ifstream input("tests/data/messages/" + file + ".txt");
  std::vector<Case> cases;
  for (std::string line; std::getline(input, line);) {
    absl::string_view head = line;
    if (absl::ConsumePrefix(&head, "#### ")) {
      const std::vector<absl::string_view> parts = absl::StrSplit(head, '|');
      if (parts.size() != 4) ADD_FAILURE() << file << ": " << line;
      cases.push_back({file, std::string(absl::StripAsciiWhitespace(parts[0])), Names(parts[1]),
                       Names(parts[2]), ""});
    } else if (!cases.empty()) {
      cases.back().text += line + "\n";
    }
  }
  return cases;
}

std::vector<Case> AllCases() {
  std::vector<Case> cases = ReadCases("forms");
  for (Case& one : ReadCases("held_out")) cases.push_back(std::move(one));
  return cases;
}

class CorpusTest : public testing::TestWithParam<Case> {};

TEST_P(CorpusTest, VerdictAndFirstAction) {
  const auto report = ExplainText(GetParam().text);
  ASSERT_TRUE(report.ok()) << report.status();
  const proto::Explanation& explanation = report->explanation();
  EXPECT_TRUE(GetParam().verdicts.count(proto::Explanation::Verdict_Name(explanation.verdict())))
      << RenderExplanationText(explanation);
  ASSERT_GT(explanation.actions_size(), 0);
  EXPECT_LE(explanation.actions_size(), 4);
  EXPECT_TRUE(GetParam().actions.count(explanation.actions(0).kind()))
      << RenderExplanationText(explanation);
  // Sentences end, and nothing is missing in them.
  for (const auto& action : explanation.actions()) {
    EXPECT_TRUE(action.sentence().ends_with('.')) << action.sentence();
    EXPECT_EQ(action.sentence().find("  "), std::string::npos) << action.sentence();
  }
}

INSTANTIATE_TEST_SUITE_P(Texts, CorpusTest, testing::ValuesIn(AllCases()),
                         [](const auto& one) { return one.param.file + "_" + one.param.name; });

TEST(Corpus, HasEnoughTextsAndAThirdKeptAway) {
  EXPECT_GE(AllCases().size(), 120u);
  EXPECT_GE(ReadCases("held_out").size() * 10, AllCases().size() * 3);
}

// A log may end anywhere.
TEST(Corpus, EachTextCutOffAnywhereHasAnAnswerOrAnError) {
  for (const Case& one : AllCases()) {
    const size_t step = std::max<size_t>(1, one.text.size() / 40);
    for (size_t length = 0; length < one.text.size(); length += step) {
      const auto report = ExplainText(one.text.substr(0, length));
      if (!report.ok()) continue;
      EXPECT_GT(report->explanation().actions_size(), 0) << one.name << " " << length;
      EXPECT_FALSE(RenderExplanationText(report->explanation()).empty());
    }
  }
}

// What stands at the place of a figure is the figure, unless colours or a broken line part it.
TEST(Corpus, EachFigureStandsWhereItIsSaidTo) {
  size_t found = 0;
  for (const Case& one : AllCases()) {
    const auto report = ExplainText(one.text);
    ASSERT_TRUE(report.ok()) << one.name;
    for (const auto& figure : report->explanation().figures()) {
      if (!figure.has_offset()) continue;
      const std::string place = one.text.substr(static_cast<size_t>(figure.offset()),
                                                static_cast<size_t>(figure.length()));
      if (place.find_first_of("\n\x1b[") != std::string::npos) continue;
      // "(19.77/22.05 GiB)" has one unit for both.
      const bool has_unit = place.back() > '9';
      const int64_t unit = place.find('.') == std::string::npos ? 1 : int64_t{1} << 30;
      const auto amount = ReadAmount(place, has_unit ? 0 : unit);
      ASSERT_TRUE(amount.has_value()) << one.name << ": " << place;
      EXPECT_EQ(amount->bytes, figure.bytes()) << one.name << ": " << place;
      ++found;
    }
  }
  EXPECT_GT(found, 300u);
}

// The advice names no setting that is set already, and none where none can help.
TEST(Corpus, NoAdviceThatTheTextRulesOut) {
  for (const Case& one : AllCases()) {
    const auto report = ExplainText(one.text);
    ASSERT_TRUE(report.ok()) << one.name;
    const proto::Explanation& explanation = report->explanation();
    for (const auto& action : explanation.actions()) {
      if (explanation.conf().find("expandable_segments:True") != std::string::npos ||
          explanation.verdict() == proto::Explanation::full) {
        EXPECT_NE(action.kind(), "setting") << one.name;
      }
      if (one.text.find("batch_size=1 ") != std::string::npos) {
        EXPECT_EQ(action.sentence().find("smaller batch"), std::string::npos) << one.name;
      }
    }
  }
}

// Returns what an explanation says that can be wrong.
std::set<std::string> Figures(const proto::Explanation& explanation) {
  std::set<std::string> figures;
  for (const auto& figure : explanation.figures()) {
    figures.insert(StrCat(figure.name(), " ", figure.bytes()));
  }
  for (const auto& process : explanation.processes()) {
    if (process.has_bytes()) figures.insert(StrCat("process ", process.pid(), process.bytes()));
  }
  if (explanation.has_gpu()) figures.insert(StrCat("gpu ", explanation.gpu()));
  if (!explanation.conf().empty()) figures.insert(explanation.conf());
  return figures;
}

// Returns a text in lines of at most `width`, with `prefix` before each.
std::string Wrapped(std::string_view text, size_t width, std::string_view prefix, bool at_words) {
  std::string wrapped;
  while (!text.empty()) {
    const size_t newline = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, newline);
    text.remove_prefix(std::min(text.size(), newline + 1));
    do {
      size_t length = std::min(line.size(), width - prefix.size());
      const size_t blank = line.substr(0, length).rfind(' ');
      if (at_words && length < line.size() && blank != std::string_view::npos && blank > 0) {
        length = blank;
      }
      StrAppend(&wrapped, prefix, line.substr(0, length), "\n");
      line.remove_prefix(length);
      if (at_words && line.starts_with(' ')) line.remove_prefix(1);
    } while (!line.empty());
  }
  return wrapped;
}

// Returns a text with each number in colour, as rich prints it.
std::string Coloured(std::string_view text, std::string_view escape) {
  std::string coloured;
  bool in_number = false;
  for (const char c : text) {
    const bool is_number = (c >= '0' && c <= '9') || (in_number && c == '.');
    if (is_number != in_number) StrAppend(&coloured, escape, is_number ? "[1;36m" : "[0m");
    in_number = is_number;
    coloured += c;
  }
  return coloured;
}

// Wrapped, prefixed, coloured and cut, a text has the same figures or fewer, never others.
TEST(Corpus, DamagedTextsSayTheSameOrLess) {
  constexpr std::string_view kPrefixes[] = {
      "",
      "> ",
      "[rank0]: ",
      "\x1b[36m(WorkerDict pid=8121)\x1b[0m ",
      "2026-03-04T05:06:07.891234Z ",
      "(EngineCore_0 pid=12) ERROR 03-04 05:06:07 [core.py:71] ",
      "trainer-0  | "};
  size_t texts = 0, figures = 0, kept = 0;
  for (const Case& one : AllCases()) {
    const auto whole = ExplainText(one.text);
    ASSERT_TRUE(whole.ok()) << one.name;
    std::set<std::string> expected = Figures(whole->explanation());
    const size_t in_all = expected.size();
    // A number at the end of a wide line is read where the text goes on.
    if (const auto longer = ExplainText(one.text + "...\n"); longer.ok()) {
      expected.merge(Figures(longer->explanation()));
    }
    // Of several failures, the last one that is left speaks.
    for (size_t end = one.text.find('\n'); end < one.text.size();
         end = one.text.find('\n', end + 1)) {
      const auto part = ExplainText(one.text.substr(0, end + 1));
      if (part.ok()) expected.merge(Figures(part->explanation()));
    }
    const auto check = [&](const std::string& damaged, bool counts) {
      const auto report = ExplainText(damaged);
      std::set<std::string> found;
      if (report.ok()) found = Figures(report->explanation());
      for (const std::string& figure : found) {
        EXPECT_TRUE(expected.count(figure)) << one.name << ": " << figure << "\n" << damaged;
      }
      if (!counts) return;
      figures += in_all;
      kept += found.size();
    };
    for (size_t width = 70; width <= 160; ++width) {
      // Each width has another prefix with each text.
      const size_t turn = texts++;
      const std::string_view prefix = kPrefixes[turn % std::size(kPrefixes)];
      const std::string text = turn % 5 == 0   ? Coloured(one.text, "\x1b")
                               : turn % 5 == 1 ? Coloured(one.text, "")
                                               : one.text;
      const std::string wrapped = Wrapped(text, width, prefix, turn % 2 == 1);
      check(wrapped, true);
      if (width % 4 > 0) continue;
      check(wrapped.substr(0, wrapped.size() * (turn % 97) / 97), false);
      check(wrapped.substr(wrapped.size() * (turn % 89) / 89), false);
    }
  }
  EXPECT_GE(kept * 100, figures * 95) << kept << " of " << figures;
}

}  // namespace
}  // namespace memreplay

// Checks texts for the verdict and the first action that each should get: tests/data/messages.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "report/message/explain.h"
#include "report/text/render.h"

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

}  // namespace
}  // namespace memreplay

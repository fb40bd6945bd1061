// Tests fit script and sweep script, over runs whose sizes are made up.
#include "experiment/value_trials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/experiment/fake_runner.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// A script that needs 100 bytes and 10 more for each of a batch, on cards whose names are sizes.
absl::StatusOr<proto::RecordReport> RunTraining(const ScriptRun& run) {
  const int64_t batch = BatchSizeOf(run);
  if (batch == 13) return absl::InvalidArgumentError("the script failed");
  return ReportOf(100 + 10 * batch, std::stoll(run.options.card));
}

ValueQuestion QuestionOf(const std::vector<std::string>& cards, bool finds_largest) {
  ValueQuestion question;
  question.script.program = {"train.py"};
  question.cards = cards;
  question.key.name = "--batch_size";
  question.values.max = 1000;
  question.finds_largest = finds_largest;
  return question;
}

TEST(TryValues, TheLargestOfEachCardAndConf) {
  ValueQuestion question = QuestionOf({"500", "1000"}, true);
  question.confs = {"", "a:b"};
  FakeRunner runner(RunTraining);
  const absl::StatusOr<proto::ScriptReport> report = TryValues(question, &runner);
  ASSERT_TRUE(report.ok()) << report.status();
  std::vector<std::string> cases;
  for (const proto::ScriptCase& found : report->cases()) {
    cases.push_back(StrCat(found.card(), " ", found.conf(), " ", found.largest()));
    EXPECT_FALSE(found.unfinished());
  }
  EXPECT_THAT(cases, testing::ElementsAre("500  40", "500 a:b 40", "1000  90", "1000 a:b 90"));
  EXPECT_EQ(runner.runs().front().options.environment.at("PYTORCH_CUDA_ALLOC_CONF"), "");
  EXPECT_EQ(runner.runs().back().options.environment.at("PYTORCH_CUDA_ALLOC_CONF"), "a:b");
  EXPECT_EQ(report->command(), "fit script");
  EXPECT_EQ(static_cast<size_t>(report->runs()), runner.runs().size());
  EXPECT_TRUE(ValuesFit(question, *report));
}

TEST(TryValues, NoneOfACardFits) {
  const ValueQuestion question = QuestionOf({"500", "50"}, true);
  FakeRunner runner(RunTraining);
  const absl::StatusOr<proto::ScriptReport> report = TryValues(question, &runner);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->cases(1).largest(), 0);
  EXPECT_FALSE(ValuesFit(question, *report));
}

// 1, 8 and a guess between them and the GPU's memory have ended; the second card is not run.
TEST(TryValues, AnInterruptedSearchKnowsBounds) {
  const ValueQuestion question = QuestionOf({"115", "1000"}, true);  // 1 fits, 8 does not
  FakeRunner runner(RunTraining);
  runner.StopAfter(2);
  const absl::StatusOr<proto::ScriptReport> report = TryValues(question, &runner);
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->cases_size(), 1);
  const proto::ScriptCase& found = report->cases(0);
  EXPECT_TRUE(found.unfinished());
  EXPECT_EQ(found.largest(), 1);
  EXPECT_EQ(found.below(), 8);
  EXPECT_EQ(found.rows_size(), 2);
  EXPECT_EQ(report->stopped_by(), "SIGINT");
  EXPECT_EQ(report->runs(), 2);
}

TEST(TryValues, NoRunHadEnded) {
  FakeRunner runner(RunTraining);
  runner.StopAfter(0);
  const absl::Status stopped = TryValues(QuestionOf({"500"}, true), &runner).status();
  EXPECT_TRUE(absl::IsCancelled(stopped)) << stopped;
}

TEST(TryValues, ListedValuesAreRowsByValue) {
  ValueQuestion question = QuestionOf({"500"}, false);
  question.values.listed = {50, 8, 40};
  FakeRunner runner(RunTraining, 3);
  const absl::StatusOr<proto::ScriptReport> report = TryValues(question, &runner);
  ASSERT_TRUE(report.ok()) << report.status();
  std::vector<std::string> rows;
  for (const proto::ScriptRow& row : report->cases(0).rows()) {
    rows.push_back(
        StrCat(row.value(), row.fits() ? " fits in " : " runs out at ", row.peak_reserved()));
  }
  EXPECT_THAT(rows, testing::ElementsAre("8 fits in 180", "40 fits in 500", "50 runs out at 500"));
  EXPECT_EQ(report->command(), "sweep script");
  EXPECT_TRUE(ValuesFit(question, *report));
  question.values.listed = {50};
  EXPECT_FALSE(ValuesFit(question, *TryValues(question, &runner)));
}

// Those that ended before it are rows of an interrupted sweep; otherwise the failure is the answer.
TEST(TryValues, ARunThatFails) {
  ValueQuestion question = QuestionOf({"500"}, false);
  question.values.listed = {8, 13, 20};
  FakeRunner fails(RunTraining);
  EXPECT_EQ(TryValues(question, &fails).status().message(), "the script failed");
  FakeRunner stops(RunTraining);
  stops.StopAfter(2);
  const absl::StatusOr<proto::ScriptReport> report = TryValues(question, &stops);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->cases(0).rows_size(), 1);
  EXPECT_TRUE(report->cases(0).unfinished());
}

// A server that says to raise the argument gets a larger one.
TEST(TryValues, AValueThatIsTooSmall) {
  ValueQuestion question = QuestionOf({"500"}, true);
  FakeRunner runner([](const ScriptRun& run) -> absl::StatusOr<proto::RecordReport> {
    if (BatchSizeOf(run) >= 10) return RunTraining(run);
    proto::RecordReport report;
    report.set_exit_status(1);
    report.set_refusal("no room; try increasing batch_size");
    return report;
  });
  const absl::StatusOr<proto::ScriptReport> report = TryValues(question, &runner);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->cases(0).largest(), 40);
  EXPECT_TRUE(report->cases(0).rows(0).too_small());
}

TEST(TriedValuesOf, DecimalsAreInUnitsOfTheSmallest) {
  const absl::StatusOr<TriedValues> values =
      TriedValuesOf("--lr", std::nullopt, std::nullopt, {*ParseDecimal("0.5"), *ParseDecimal("2")});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(values->scale, 10);
  EXPECT_THAT(values->listed, testing::ElementsAre(5, 20));
  ValueQuestion question = QuestionOf({"500"}, false);
  question.script.program = {"train.py", "--lr=?"};
  question.key.name = "--lr";
  question.values = *values;
  FakeRunner runner(RunTraining);
  const absl::StatusOr<proto::ScriptReport> report = TryValues(question, &runner);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->cases(0).rows(0).value(), 0.5);
  EXPECT_THAT(runner.runs()[0].options.program, testing::ElementsAre("train.py", "--lr=0.5"));
}

TEST(TriedValuesOf, AShareIsFoundToAHundredth) {
  const absl::StatusOr<TriedValues> share =
      TriedValuesOf("--gpu-memory-utilization", std::nullopt, std::nullopt, {});
  ASSERT_TRUE(share.ok()) << share.status();
  EXPECT_EQ(share->scale, 100);
  EXPECT_EQ(share->step, 1);
  EXPECT_EQ(share->max, 100);
  EXPECT_EQ(TriedValuesOf("--b", Decimal{2, 1}, Decimal{1, 1}, {}).status().message(),
            "--step, --max: expected 0 < step <= max <= 1099511627776 (by default, step is 2 and "
            "max 1)");
  EXPECT_FALSE(TriedValuesOf("--b", Decimal{0, 1}, std::nullopt, {}).ok());
}

TEST(ParseDecimal, DigitsWithAtMostFourDecimals) {
  for (const char* text : {"", ".", "1.", "1.23456", "-1", "1e3", "0x1", "99999999999999999999"}) {
    EXPECT_FALSE(ParseDecimal(text).has_value()) << text;
  }
  EXPECT_EQ(ParseDecimal("1.2345")->units, 12345);
  EXPECT_EQ(ParseDecimal(".5")->scale, 10);
}

TEST(ScriptKey, TheValueGoesInThePlaceOfEachQuestionMarkOrToTheEnd) {
  const ScriptKey key = {"--n"};
  EXPECT_THAT(key.WordsWith({"a.py", "?", "--m=?", "x=?y"}, "3"),
              testing::ElementsAre("a.py", "3", "--m=3", "x=?y"));
  EXPECT_THAT(key.WordsWith({"a.py", "=?"}, "3"), testing::ElementsAre("a.py", "=?", "--n=3"));
  EXPECT_FALSE(key.IsIn({"a.py", "what?"}));
  EXPECT_TRUE(key.IsIn({"a.py", "--m=?"}));
}

}  // namespace
}  // namespace memreplay

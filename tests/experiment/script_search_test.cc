#include "experiment/script_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace memreplay {
namespace {

// A program whose memory is `base + per_value * value`, in steps of `grain`, on a card.
struct ScriptStub {
  int64_t card = 0;
  int64_t base = 0;
  int64_t per_value = 0;
  int64_t grain = 1;
  int64_t floor = 0;   // smaller values are too small
  int runs = 0;        // values run
  int rounds = 0;      // calls
  int64_t most = 0;    // the largest value run
  bool twice = false;  // a value was run again

  int64_t Peak(int64_t value) const { return (base + per_value * value) / grain * grain; }
  int64_t Largest(int64_t step, int64_t up_to) const {
    int64_t largest = 0;
    for (int64_t value = step; value <= up_to && Peak(value) <= card; value += step) {
      if (value >= floor) largest = value;
    }
    return largest;
  }

  absl::StatusOr<std::vector<proto::ScriptRow>> Run(absl::Span<const int64_t> values) {
    std::vector<proto::ScriptRow> rows;
    ++rounds;
    for (const int64_t value : values) {
      twice |= std::find(seen.begin(), seen.end(), value) != seen.end();
      seen.push_back(value);
      ++runs;
      most = std::max(most, value);
      proto::ScriptRow& row = rows.emplace_back();
      row.set_fits(Peak(value) <= card && value >= floor);
      row.set_too_small(value < floor);
      row.set_peak_reserved(std::min(Peak(value), card));
      row.set_spare(std::max<int64_t>(0, card - Peak(value)));
    }
    return rows;
  }

  std::vector<int64_t> seen = {};
};

TEST(ScriptSearch, FindsTheLargestValueThatFits) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 2000; ++i) {
    const auto draw = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    ScriptStub program;
    program.card = draw(1, 100'000);
    program.base = draw(0, 20'000);
    program.per_value = draw(0, 3'000);
    program.grain = draw(1, 3) == 1 ? draw(1, 5'000) : 1;
    if (draw(1, 3) == 1) program.floor = draw(1, 40);
    const int64_t step = draw(1, 3) == 1 ? draw(1, 16) : 1;
    const int64_t most = draw(step, draw(1, 2) == 1 ? 5'000 : 20);
    ScriptSearch search([&](absl::Span<const int64_t> values) { return program.Run(values); },
                        static_cast<size_t>(draw(1, 4)));
    const absl::StatusOr<int64_t> largest = search.FindLargest(step, most);
    ASSERT_TRUE(largest.ok());
    EXPECT_EQ(*largest, program.Largest(step, most)) << "program " << i;
    EXPECT_LE(program.most, most) << "program " << i;
    EXPECT_FALSE(program.twice) << "program " << i;
    EXPECT_EQ(search.tried().size(), static_cast<size_t>(program.runs));
  }
}

// Memory that grows evenly is found by the line through two runs, not by halving.
TEST(ScriptSearch, GuessesWhereTheCardEnds) {
  ScriptStub program{.card = 24'000'000, .base = 3'000'000, .per_value = 1'234};
  ScriptSearch search([&](absl::Span<const int64_t> values) { return program.Run(values); }, 3);
  EXPECT_EQ(*search.FindLargest(1, int64_t{1} << 20), program.Largest(1, int64_t{1} << 20));
  EXPECT_LE(program.rounds, 3);
}

// Between values that are too small and one that is too large, none is tried that cannot matter.
TEST(ScriptSearch, HalvesUpwardsFromValuesThatAreTooSmall) {
  ScriptStub program{.card = 79'000, .base = 500, .per_value = 800, .floor = 75};
  ScriptSearch search([&](absl::Span<const int64_t> values) { return program.Run(values); }, 1);
  EXPECT_EQ(*search.FindLargest(1, 100), 98);
  EXPECT_LE(program.runs, 10);
  program = {.card = 79'000, .base = 500, .per_value = 800, .floor = 99};
  ScriptSearch none([&](absl::Span<const int64_t> values) { return program.Run(values); }, 1);
  EXPECT_EQ(*none.FindLargest(1, 100), 0);
}

TEST(SaysToRaise, TheArgumentHoweverItIsWritten) {
  const std::string text =
      "No memory for the cache. Try increasing `gpu_memory_utilization`, or ...";
  EXPECT_TRUE(SaysToRaise(text, "--gpu-memory-utilization"));
  EXPECT_FALSE(SaysToRaise(text, "--max-model-len"));
  EXPECT_FALSE(SaysToRaise("increasing memory", ""));
  EXPECT_FALSE(SaysToRaise("decrease gpu_memory_utilization", "--gpu-memory-utilization"));
  EXPECT_TRUE(SaysToRaise("Please increase --mem-fraction-static.", "--mem-fraction-static"));
}

TEST(ScriptRowOf, ARefusalDoesNotFitAndAStoppedServerDoes) {
  proto::RecordReport report;
  report.set_exit_status(143);
  EXPECT_FALSE(ScriptRowOf(report).fits());
  report.set_stopped_by("--until");
  EXPECT_TRUE(ScriptRowOf(report).fits());
  report.set_refusal("no memory");
  EXPECT_FALSE(ScriptRowOf(report).fits());
}

TEST(ScriptSearch, EndsAtTheFirstError) {
  int calls = 0;
  ScriptSearch search(
      [&](absl::Span<const int64_t>) -> absl::StatusOr<std::vector<proto::ScriptRow>> {
        ++calls;
        return absl::UnknownError("no such program");
      },
      2);
  EXPECT_EQ(search.FindLargest(1, 100).status().message(), "no such program");
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace memreplay

// Tests the search for changes that make a script fit, over runs whose sizes are made up.
#include "experiment/advise_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "record/card/model/options.h"
#include "report/text/render.h"
#include "report/words/verdict.h"
#include "tests/experiment/fake_runner.h"
#include "tests/golden.h"
#include "trace/bytes/json_scanner.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr char kExpandable[] = "expandable_segments:True";

// A script needs 1000 MiB, and each remedy saves something.
class AdviceSearch : public testing::Test {
 protected:
  void Offer(const std::string& name, int64_t saves, double cost, bool preserves = true,
             const std::string& group = "") {
    proto::Proposal& proposal = *as_is_.add_proposals();
    proposal.set_name(name);
    proposal.set_change(name);
    proposal.set_cost(name + " costs");
    proposal.set_cost_rank(cost);
    proposal.set_preserves(preserves);
    proposal.set_preserves_text(preserves ? "the same" : "other results");
    proposal.set_group(group.empty() ? name : group);
    proposal.add_lines(name + "()");
    saves_[name] = saves;
  }

  // Each of the key's value costs 10 MiB more, and an edit of `script_` saves 100.
  proto::AdvisedRun RunOf(const ScriptRun& of) {
    const std::vector<std::string>& names = of.options.remedies;
    const int64_t value = BatchSizeOf(of);
    proto::AdvisedRun run = as_is_;
    if (!names.empty() && names.front() == "compile") run.set_compiles(true);
    int64_t needs = 1000 + 10 * value;
    for (const std::string& word : of.options.program) {
      if (word.starts_with("--saves=")) needs -= ParseInt64(word.substr(8)).value_or(0);
    }
    for (const proto::Edit& edit : of.options.edits) {
      if (edit.file() != script_) continue;
      needs -= 100;
      run.add_met(edit.file());
    }
    for (const std::string& name : names) {
      needs -= saves_[name];
      if (saves_[name] != 0) run.add_met(name);
      if (name == failing_) run.set_error("ValueError: no");
      if (name == value_failing_ && value > 8) run.set_error("ValueError: no");
      if (name == "pins") run.set_pinned(as_is_.pinned() + 200 * kMiB);
    }
    if (!names.empty() && names.back() == "roofline") {
      proto::Work& work = *run.mutable_work();
      const bool is_twice = names.front() == "checkpoint";
      work.set_steps(2);
      work.set_flops(is_twice ? 5e9 : 4e9);
      work.set_seconds(rates_known_ ? (is_twice ? 0.22 : 0.2) : 0);
    }
    run.set_peak_allocated(needs * kMiB);
    for (const auto& [conf, saves] :
         {std::make_pair("", int64_t{0}), std::make_pair(kExpandable, expandable_saves_)}) {
      proto::AdvisedRun::Fit& fit = *run.add_fits();
      fit.set_conf(conf);
      fit.set_smallest((needs - saves) * kMiB);
      fit.set_peak_reserved((needs - saves + 10) * kMiB);
      fit.set_peak_allocated((needs - saves) * kMiB);
    }
    return run;
  }

  proto::Advice Advise(int64_t memory, AdviceQuestion question = {}) {
    question.script.card = "a-card";
    question.script.program = {script_.empty() ? "train.py" : script_};
    question.memory = Bytes(static_cast<uint64_t>(memory * kMiB));
    as_is_.set_reserve(100 * kMiB);
    as_is_.set_bound(300 * kMiB);
    FakeRunner runner([&](const ScriptRun& run) { return Run(run, question.value); });
    runner.StopAfter(stop_after_);
    const absl::StatusOr<proto::Advice> advice = AdviseScript(question, &runner);
    ranks_run_.clear();
    for (const ScriptRun& run : runner.runs()) ranks_run_.push_back(run.options.rank.value_or(0));
    EXPECT_TRUE(advice.ok()) << advice.status();
    return *advice;
  }

  // A run on a GPU without a limit, which is studied, or on the GPU itself.
  absl::StatusOr<proto::RecordReport> Run(const ScriptRun& run, int64_t value) {
    const std::vector<std::string>& names = run.options.remedies;
    if (!run.is_studied) {
      EXPECT_TRUE(run.options.card_options.empty());
      const bool fits = names.empty() || names[0] != refuted_;
      const proto::AdvisedRun found = RunOf(run);
      const int conf = run.options.environment.empty() ? 0 : 1;
      const int64_t peak = found.fits(conf).peak_reserved();
      proto::RecordReport report = ReportOf(peak, fits ? peak : 0);
      report.mutable_processes(0)->mutable_cards(0)->set_peak_allocated(found.peak_allocated());
      report.mutable_processes(0)->set_group(as_is_.group());
      return report;
    }
    EXPECT_EQ(run.options.card_options.at("MEMREPLAY_CARD_CAPACITY"), StrCat(card::kMaxBytes));
    const bool is_changed = !names.empty() || !run.options.edits.empty() ||
                            run.options.program.back().starts_with("--saves=");
    EXPECT_EQ(run.options.survey, !is_changed && run.options.rank.value_or(0) == 0);
    if (run.name.empty()) {
      EXPECT_EQ(BatchSizeOf(run), value);
      ran_.push_back(names);
    } else {
      ++values_run_;
    }
    proto::RecordReport report;
    proto::AdvisedRun& advised = *report.mutable_advised();
    advised = RunOf(run);
    if (!advised.error().empty()) return absl::InvalidArgumentError(advised.error());
    if (run.options.rank == 1) {  // needs 50 MiB more
      for (proto::AdvisedRun::Fit& fit : *advised.mutable_fits()) {
        fit.set_smallest(fit.smallest() + 50 * kMiB);
      }
    }
    return report;
  }

  static std::vector<std::string> Remedies(const proto::Advice::Row& row) {
    return {row.remedies().begin(), row.remedies().end()};
  }

  proto::AdvisedRun as_is_;
  std::map<std::string, int64_t> saves_;
  int64_t expandable_saves_ = 20;
  bool rates_known_ = true;
  std::string failing_, refuted_, value_failing_, script_;
  size_t stop_after_ = SIZE_MAX;  // runs
  std::vector<int64_t> ranks_run_;
  size_t values_run_ = 0;
  std::vector<std::vector<std::string>> ran_;
};

using Strings = std::vector<std::string>;

TEST_F(AdviceSearch, TheCheapestThatFitsComesFirst) {
  Offer("dear", 500, 2);
  Offer("cheap", 300, 1);
  Offer("small", 10, 0.1);
  const proto::Advice advice = Advise(900);
  EXPECT_EQ(advice.goal_bytes(), 800 * kMiB);
  EXPECT_FALSE(advice.as_is().fits());
  EXPECT_EQ(Remedies(advice.rows(0)), Strings{"cheap"});
  EXPECT_TRUE(advice.rows(0).is_confirmed());
  EXPECT_EQ(advice.rows(0).spare_bytes(), 100 * kMiB);
  EXPECT_EQ(advice.rows(0).saved_bytes(), 300 * kMiB);
  EXPECT_EQ(Remedies(advice.rows(1)), Strings{"dear"});
  EXPECT_TRUE(AdviceFits(advice));
  EXPECT_EQ(ran_.size(), 7u);  // as it is and each; as it is and those that fit, timed
}

// Also where the script fits as it is.
TEST_F(AdviceSearch, WhatSavesNothingComesLast) {
  expandable_saves_ = 0;
  Offer("idle", -10, 0.1);
  Offer("cheap", 300, 1);
  const proto::Advice advice = Advise(2000);
  EXPECT_EQ(Remedies(advice.rows(0)), Strings{"cheap"});
  const std::string text = RenderAdvice("train.py", advice);
  EXPECT_THAT(text, testing::HasSubstr("\n  saves nothing: idle\n"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("  idle")));
}

TEST_F(AdviceSearch, WhatIsMadeTwiceAndWhatIsPinned) {
  Offer("checkpoint", 300, 1);
  Offer("pins", 300, 2);
  as_is_.mutable_proposals(1)->set_transfers(true);
  Offer("small", 10, 1);
  as_is_.set_pinned(50 * kMiB);
  const proto::Advice advice = Advise(900);
  EXPECT_EQ(ran_.size(), 7u);  // as it is and with each; as it is and with both that fit, timed
  EXPECT_EQ(advice.rows(0).cost(),
            "checkpoint costs; 25 % more FLOPs; 10 % more time (an estimate)");
  EXPECT_EQ(advice.rows(1).cost(), "pins costs; 200 MiB of pinned memory of the host");
  EXPECT_DOUBLE_EQ(advice.as_is().step_seconds(), 0.1);
  EXPECT_DOUBLE_EQ(advice.rows(0).step_seconds(), 0.11);
  EXPECT_THAT(RenderAdvice("train.py", advice),
              testing::HasSubstr("A training step takes 100 ms as it is. Times are estimates"));
  EXPECT_EQ(advice.rows_size(), 4);  // and expandable segments
}

TEST_F(AdviceSearch, NoTimeWithoutRatesAndOfCompiledScripts) {
  Offer("checkpoint", 300, 1);
  rates_known_ = false;
  const proto::Advice unknown = Advise(900);
  EXPECT_EQ(unknown.rows(0).cost(), "checkpoint costs; 25 % more FLOPs");
  EXPECT_EQ(unknown.rows(0).step_seconds(), 0);
  EXPECT_EQ(RenderAdvice("train.py", unknown).find("estimate"), std::string::npos);
  ran_.clear();
  as_is_.set_compiles(true);
  EXPECT_EQ(Advise(900).rows(0).cost(), "checkpoint costs");
  EXPECT_EQ(ran_.size(), 2u);
}

TEST_F(AdviceSearch, SettingsCostNoRun) {
  Offer("some", 90, 1);
  const proto::Advice alone = Advise(1085);
  EXPECT_EQ(Remedies(alone.rows(0)), Strings{kExpandable});
  const proto::Advice both = Advise(995);
  EXPECT_EQ(Remedies(both.rows(0)), (Strings{"some", kExpandable}));
  EXPECT_EQ(both.rows(0).environment(0), StrCat("PYTORCH_CUDA_ALLOC_CONF=", kExpandable));
}

TEST_F(AdviceSearch, ChangesAreMadeAsAUserMakesThem) {
  expandable_saves_ = 0;
  const std::string script = StrCat(testing::TempDir(), "train.py");
  std::ofstream(script) << "x = f(1)\n";
  Offer("argument", 0, 1);
  as_is_.mutable_proposals(0)->add_arguments("--saves=300");
  Offer("patch", 0, 2);
  proto::Edit& edit = *as_is_.mutable_proposals(1)->add_edits();
  edit.set_file(script);
  edit.set_begin(7);
  edit.set_end(7);
  edit.set_text(", saves=100");
  Offer("outside", 400, 0.1);
  as_is_.mutable_proposals(2)->set_unwritten("it is made in a library");
  script_ = script;
  const proto::Advice advice = Advise(900);
  SCOPED_TRACE(RenderAdvice("train.py", advice));
  const proto::Advice::Row& argument = advice.rows(0);
  EXPECT_EQ(Remedies(argument), Strings{"argument"});
  EXPECT_EQ(argument.arguments(0), "--saves=300");
  EXPECT_EQ(argument.smallest_bytes(), 700 * kMiB);
  EXPECT_EQ(argument.lines_size(), 0);
  const proto::Advice::Row& patch = advice.rows(1);
  EXPECT_EQ(patch.smallest_bytes(), 900 * kMiB);
  EXPECT_THAT(patch.patch(), testing::HasSubstr("-x = f(1)\n+x = f(1, saves=100)\n"));
  // What cannot be written comes last, though it would fit.
  EXPECT_EQ(Remedies(advice.rows(3)), Strings{"outside"});
  EXPECT_EQ(advice.rows(3).unwritten(), "it is made in a library");
  std::string text = RenderAdvice("train.py", advice);
  EXPECT_THAT(text, testing::HasSubstr(
                        StrCat("Run for argument:\n\n    python3 ", script, " --saves=300\n")));
  EXPECT_THAT(text, testing::HasSubstr("not written as a patch: outside: it is made in a library; "
                                       "made in the running process, it needs 600 MiB"));
  proto::Advice quoted = advice;
  quoted.mutable_rows(0)->add_environment("NAME=a b");
  quoted.mutable_rows(0)->set_arguments(0, "--layers=[1, 2]");
  text = RenderAdvice("train.py", quoted);
  EXPECT_THAT(text, testing::HasSubstr(
                        StrCat("\n\n    NAME='a b' python3 ", script, " '--layers=[1, 2]'\n")));
  EXPECT_FALSE(AdviceFits(Advise(760)));
}

TEST_F(AdviceSearch, AFileThatIsNotReadIsNoChange) {
  Offer("patch", 0, 2);
  as_is_.mutable_proposals(0)->add_edits()->set_file("/elsewhere.py");
  const proto::Advice advice = Advise(900);
  EXPECT_EQ(advice.rows(1).error(), "the script never gets to it");
}

TEST_F(AdviceSearch, PairsAndTriplesAreMinimal) {
  expandable_saves_ = 0;
  Offer("a", 100, 1);
  Offer("b", 150, 1.5);
  Offer("c", 200, 4);
  const proto::Advice pair = Advise(850);  // 750: a and b
  EXPECT_EQ(Remedies(pair.rows(0)), (Strings{"a", "b"}));
  for (const proto::Advice::Row& row : pair.rows()) {
    EXPECT_TRUE(row.remedies_size() != 2 || row.fits());
    EXPECT_LT(row.remedies_size(), 3);
  }
  const proto::Advice triple = Advise(680);  // 580: all three
  EXPECT_EQ(Remedies(triple.rows(0)), (Strings{"a", "b", "c"}));
}

TEST_F(AdviceSearch, WhatTakesLeastTimeComesFirst) {
  Offer("checkpoint", 300, 0.5);
  Offer("other", 300, 1);
  const proto::Advice advice = Advise(900);
  EXPECT_EQ(Remedies(advice.rows(0)), Strings{"other"});
  EXPECT_EQ(Remedies(advice.rows(1)), Strings{"checkpoint"});
}

TEST_F(AdviceSearch, PairsAreTriedBeforeMemoryGoesOverPcie) {
  expandable_saves_ = 0;
  Offer("a", 100, 1, true, "checkpoint:A");
  Offer("b", 150, 1.5, true, "checkpoint:B");
  Offer("c", 10, 1);
  Offer("offload", 400, 2.5, true, "checkpoint");
  as_is_.mutable_proposals(3)->set_transfers(true);
  const proto::Advice advice = Advise(850);  // 750: a and b, or offload
  EXPECT_EQ(Remedies(advice.rows(0)), (Strings{"a", "b"}));
  EXPECT_EQ(Remedies(advice.rows(1)), Strings{"offload"});
  EXPECT_EQ(Remedies(Advise(750).rows(0)), Strings{"offload"});
}

TEST_F(AdviceSearch, OneOfAGroup) {
  expandable_saves_ = 0;
  Offer("each", 200, 1, true, "checkpoint");
  Offer("second", 100, 1, true, "checkpoint");
  EXPECT_FALSE(AdviceFits(Advise(800)));  // 700, which both would reach
}

TEST_F(AdviceSearch, OtherResultsAreTheLastResort) {
  expandable_saves_ = 0;
  Offer("a", 100, 1);
  Offer("b", 100, 1);
  Offer("rounds", 500, 3, false);
  const proto::Advice kept = Advise(900);  // 800: a and b, although `rounds` fits alone
  EXPECT_EQ(Remedies(kept.rows(0)), (Strings{"a", "b"}));
  const proto::Advice changed = Advise(610);
  EXPECT_EQ(Remedies(changed.rows(0)), Strings{"rounds"});
  EXPECT_FALSE(changed.rows(0).preserves());
}

// Tests what a person reads: one change fits, with its lines; one is not enough; one failed.
TEST_F(AdviceSearch, Text) {
  failing_ = "fails";
  Offer("fails", 400, 1);
  Offer("cheap", 300, 0.4);
  Offer("rounds", 500, 4, false);
  Offer("small", 50, 1);
  const auto text = [&](int64_t memory) {
    proto::Advice advice = Advise(memory);
    advice.clear_runs();
    advice.clear_seconds();
    return RenderAdvice("train.py --lr=3", advice);
  };
  const std::string fits = text(900);
  failing_.clear();
  const std::string nothing = text(120);
  proto::CardChoice choice;
  for (const int64_t memory : {120, 900, 1200}) {
    *choice.add_cards() = Advise(memory);
    choice.mutable_cards()->rbegin()->set_card(StrCat("gpu-", memory));
  }
  ExpectGolden("tests/report/golden/advise_script.txt",
               fits + "\n" + nothing + "\n" + RenderCardChoice("train.py", choice));
}

TEST_F(AdviceSearch, WhatFailsIsOneRowAndTheOthersGoOn) {
  failing_ = "fails";
  Offer("fails", 400, 1);
  Offer("never", 0, 1);  // the script does not get to it
  Offer("works", 300, 1);
  const proto::Advice advice = Advise(900);
  EXPECT_EQ(Remedies(advice.rows(0)), Strings{"works"});
  std::map<std::string, std::string> errors;
  for (const proto::Advice::Row& row : advice.rows()) {
    if (!row.error().empty()) errors[row.remedies(0)] = row.error();
  }
  EXPECT_EQ(errors, (std::map<std::string, std::string>{{"fails", "ValueError: no"},
                                                        {"never", "the script never gets to it"}}));
}

TEST_F(AdviceSearch, NothingHelps) {
  Offer("a", 100, 1);
  const proto::Advice advice = Advise(400);
  EXPECT_FALSE(AdviceFits(advice));
  EXPECT_EQ(advice.bound_bytes(), 300 * kMiB);
}

TEST_F(AdviceSearch, ARunOnTheGpuHasTheLastWord) {
  refuted_ = "cheap";
  Offer("cheap", 300, 1);
  Offer("dear", 300, 2);
  const proto::Advice advice = Advise(900);
  EXPECT_EQ(Remedies(advice.rows(0)), Strings{"dear"});
  EXPECT_TRUE(advice.rows(0).is_confirmed());
  ASSERT_EQ(advice.notes_size(), 1);
  EXPECT_NE(advice.notes(0).find("memory runs out when it is run"), std::string::npos);
}

TEST_F(AdviceSearch, OnlyThoseThatAreNamed) {
  Offer("a", 300, 1);
  Offer("b", 300, 1);
  AdviceQuestion question;
  question.only = {"b"};
  const proto::Advice advice = Advise(900, question);
  EXPECT_EQ(Remedies(advice.rows(0)), Strings{"b"});
  EXPECT_EQ(ran_.size(), 4u);  // as it is and with b, also timed
}

// The goal is a value that does not fit as it is.
TEST_F(AdviceSearch, WithAValueThatTheScriptDoesNotHave) {
  Offer("cheap", 300, 1);
  AdviceQuestion question;
  question.key.name = "--batch_size";
  question.value = 30;  // 1300 MiB
  const proto::Advice advice = Advise(1150, question);
  EXPECT_EQ(advice.as_is().smallest_bytes(), 1300 * kMiB);
  EXPECT_EQ(Remedies(advice.rows(0)), Strings{"cheap"});
  EXPECT_EQ(advice.rows(0).spare_bytes(), 50 * kMiB);
  EXPECT_EQ(values_run_, 0u);
  EXPECT_EQ(advice.rows(0).largest(), 0);
  EXPECT_NE(RenderAdvice("train.py", advice).find("With --batch_size=30, it needs 1.27 GiB"),
            std::string::npos);
}

TEST_F(AdviceSearch, TheLargestValueOfEachRow) {
  Offer("cheap", 300, 1);
  Offer("fails", 50, 1);
  value_failing_ = "fails";
  AdviceQuestion question;
  question.key.name = "--batch_size";
  question.finds_largest = true;
  for (const int64_t value : {0, 8}) {
    question.value = value;
    const proto::Advice advice = Advise(1205, question);  // 1105: 10 as it is, 12 with expandable
    EXPECT_EQ(advice.as_is().largest(), 10);
    std::map<std::string, int64_t> largest;
    for (const proto::Advice::Row& row : advice.rows()) {
      largest[row.remedies(0)] = row.largest();
      EXPECT_EQ(row.largest_is_proven(), row.remedies(0) != "fails") << row.remedies(0);
    }
    EXPECT_EQ(largest,
              (std::map<std::string, int64_t>{{"cheap", 40}, {"fails", 8}, {kExpandable, 12}}));
    EXPECT_THAT(advice.notes(0), testing::StartsWith("fails: the largest --batch_size is not"));
    const std::string text = RenderAdvice("train.py", advice);
    EXPECT_NE(text.find("the largest --batch_size with which it fits"), std::string::npos);
  }
}

// Not even 1 fits; and the search stops after so many runs, with what it found until then.
TEST_F(AdviceSearch, TheLargestValueIsNoneOrNotKnown) {
  expandable_saves_ = 0;
  Offer("a", 400, 1);
  Offer("b", 300, 2);
  AdviceQuestion question;
  question.key.name = "--batch_size";
  question.finds_largest = true;
  const proto::Advice none = Advise(1100, question);
  EXPECT_EQ(none.as_is().largest(), 0);
  EXPECT_TRUE(none.as_is().largest_is_proven());
  values_run_ = 0;
  question.max_runs = 5;
  const proto::Advice stopped = Advise(1100, question);
  EXPECT_EQ(values_run_, 5u);  // two as it is, three with a: 1, 8 and what the line says
  std::map<std::string, std::pair<int64_t, bool>> largest;
  for (const proto::Advice::Row& row : stopped.rows()) {
    largest[row.remedies(0)] = {row.largest(), row.largest_is_proven()};
  }
  EXPECT_EQ(largest, (std::map<std::string, std::pair<int64_t, bool>>{
                         {kExpandable, {0, false}}, {"a", {40, false}}, {"b", {0, false}}}));
  EXPECT_EQ(stopped.notes(0),
            "Only 5 runs looked for the largest --batch_size; --max-runs allows more.");
  EXPECT_NE(RenderAdvice("train.py", stopped).find("40 or more"), std::string::npos);
}

TEST_F(AdviceSearch, CombinationsAreLimited) {
  expandable_saves_ = 0;
  for (const char* name : {"a", "b", "c", "d", "e"}) Offer(name, 20, 1);
  AdviceQuestion question;
  question.max_runs = 3;
  const proto::Advice advice = Advise(500, question);
  EXPECT_EQ(ran_.size(), 1u + 5u + 3u);
  EXPECT_EQ(advice.notes_size(), 1);
}

// Its process used CUDA, but requested nothing of PyTorch's allocator.
TEST(AdviseScript, AScriptThatAllocatedNothing) {
  FakeRunner runner([](const ScriptRun&) { return proto::RecordReport(); });
  AdviceQuestion question;
  question.script.program = {"train.py"};
  const absl::StatusOr<proto::Advice> advice = AdviseScript(question, &runner);
  EXPECT_EQ(advice.status().message(), "it allocated no GPU memory");
}

TEST_F(AdviceSearch, WhatIsTriedOnlyIfNamed) {
  Offer("compile", 300, 0.1);
  as_is_.mutable_proposals(0)->set_named_only(true);
  Offer("cheap", 150, 1);
  EXPECT_EQ(Advise(900).rows_size(), 2);
  EXPECT_THAT(ran_, testing::Each(testing::Not(testing::Contains("compile"))));

  ran_.clear();
  AdviceQuestion question;
  question.only = {"compile", "cheap"};
  const proto::Advice advice = Advise(900, question);
  EXPECT_EQ(Remedies(advice.rows(0)), Strings{"compile"});
  EXPECT_THAT(advice.rows(0).lines(), testing::ElementsAre("compile()"));
  EXPECT_EQ(advice.rows(0).step_seconds(), 0);
  EXPECT_THAT(ran_, testing::Not(testing::Contains(testing::Contains("roofline"))));

  ran_.clear();  // together they would be enough, but it goes with no other
  EXPECT_FALSE(Advise(700, question).rows(0).fits());
  EXPECT_THAT(ran_, testing::Not(testing::Contains(testing::SizeIs(2))));
}

// The peaks of a setting are of a run with it, also where the script fits without.
TEST_F(AdviceSearch, SettingsAreRun) {
  Offer("cheap", 300, 1);
  const proto::Advice advice = Advise(1205);
  ASSERT_TRUE(advice.as_is().fits());
  for (const proto::Advice::Row& row : advice.rows()) {
    EXPECT_EQ(row.is_confirmed(), !row.environment().empty()) << row.change();
  }
  EXPECT_THAT(advice.rows(),
              testing::Contains(testing::Property(&proto::Advice::Row::is_confirmed, true)));
}

TEST_F(AdviceSearch, RunsAreCounted) {
  Offer("cheap", 300, 1);
  EXPECT_EQ(Advise(900).runs(), 5);  // as it is and with it, both timed, and a confirmation
}

// As it is, the first change and nothing else: it is a row, and a note names the others.
TEST_F(AdviceSearch, AnInterruptionLeavesWhatIsKnown) {
  Offer("a", 300, 1);
  Offer("b", 300, 2);
  Offer("c", 300, 3);
  stop_after_ = 2;
  const proto::Advice advice = Advise(900);
  EXPECT_EQ(Remedies(advice.rows(0)), Strings{"a"});
  EXPECT_TRUE(advice.rows(0).fits());
  EXPECT_FALSE(advice.rows(0).is_confirmed());
  EXPECT_THAT(advice.notes(),
              testing::ElementsAre("It was interrupted before these were tried: b, c."));
  EXPECT_EQ(advice.runs(), 2);
}

TEST_F(AdviceSearch, AnInterruptedSearchForTheLargestValueHasThoseThatFit) {
  AdviceQuestion question;
  question.key.name = "--batch_size";
  question.finds_largest = true;
  stop_after_ = 5;  // as it is, the same timed, with a setting, and with the values 1 and 8
  const proto::Advice advice = Advise(1205, question);
  EXPECT_EQ(advice.as_is().largest(), 8);
  EXPECT_FALSE(advice.as_is().largest_is_proven());
  EXPECT_THAT(advice.notes(),
              testing::ElementsAre("It was interrupted before all runs had ended."));
}

TEST_F(AdviceSearch, TheRankThatNeedsMostCounts) {
  Offer("cheap", 300, 1);
  as_is_.set_group(2);
  AdviceQuestion question;
  question.script.ranks = 2;
  const proto::Advice advice = Advise(900, question);
  EXPECT_EQ(advice.as_is().smallest_bytes(), 1050 * kMiB);
  EXPECT_EQ(advice.rows(0).smallest_bytes(), 750 * kMiB);
  EXPECT_THAT(advice.notes(), testing::Contains(testing::StartsWith("Every rank of the job")));
  EXPECT_EQ(std::count(ranks_run_.begin(), ranks_run_.end(), 1), advice.runs() / 2);

  question.script.rank = 0;
  const proto::Advice one = Advise(900, question);
  EXPECT_EQ(one.as_is().smallest_bytes(), 1000 * kMiB);
  EXPECT_THAT(ranks_run_, testing::Each(0));
}

TEST(AdviseScript, NoRunHadEnded) {
  FakeRunner runner([](const ScriptRun&) { return proto::RecordReport(); });
  runner.StopAfter(0);
  AdviceQuestion question;
  question.script.program = {"train.py"};
  EXPECT_TRUE(absl::IsCancelled(AdviseScript(question, &runner).status()));
}

}  // namespace
}  // namespace memreplay

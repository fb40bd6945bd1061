// Checks that a schedule whose events are made again for each pass is the one whose events are
// kept.
#include "trace/program/program_events.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/trace/support/trace_dump.h"
#include "trace/program/program_reader.h"
#include "trace/schedule/schedule.h"

namespace memreplay::program {
namespace {

std::shared_ptr<const Trace> Expanded(const std::string& name, uint64_t most_kept,
                                      const std::map<std::string, int64_t>& params = {}) {
  CompileOptions options;
  options.params = params;
  absl::StatusOr<ProgramCode> code = OpenProgramCode("examples/" + name + ".txtpb", options);
  EXPECT_TRUE(code.ok()) << code.status();
  absl::StatusOr<Trace> trace = ExpandProgram(*std::move(code), most_kept);
  EXPECT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->devices[0].events.source() == nullptr, most_kept > 0);
  return std::make_shared<const Trace>(*std::move(trace));
}

const EventList& EventsOf(const std::shared_ptr<const Trace>& trace) {
  return trace->devices[0].events;
}

TEST(ProgramEvents, AreThoseThatAreKept) {
  for (const std::string name : {"fsdp", "kv_cache", "patterns", "pipeline_1f1b", "random_load",
                                 "two_streams", "variable_lengths"}) {
    SCOPED_TRACE(name);
    const auto kept = Expanded(name, kMaxKeptEvents), again = Expanded(name, 0);
    EXPECT_EQ(testing::DumpTrace(*kept), testing::DumpTrace(*again));
    EXPECT_TRUE(std::equal(EventsOf(kept).begin(), EventsOf(kept).end(), EventsOf(again).begin(),
                           EventsOf(again).end()));

    const Schedule a = Schedule::Build(kept, 0), b = Schedule::Build(again, 0);
    ASSERT_EQ(a.requests().size(), b.requests().size());
    for (size_t i = 0; i < a.requests().size(); ++i) {
      ASSERT_EQ(a.requests()[i], b.requests()[i]) << i;
    }
    EXPECT_EQ(a.allocation_count(), b.allocation_count());
    for (size_t row = 0; row < static_cast<size_t>(DiagnosticKind::kCount); ++row) {
      const auto kind = static_cast<DiagnosticKind>(row);
      EXPECT_EQ(a.diagnostics().count(kind), b.diagnostics().count(kind));
      ASSERT_EQ(a.diagnostics().places(kind).size(), b.diagnostics().places(kind).size());
      for (size_t i = 0; i < a.diagnostics().places(kind).size(); ++i) {
        EXPECT_EQ(a.diagnostics().places(kind)[i].position,
                  b.diagnostics().places(kind)[i].position);
        EXPECT_EQ(a.diagnostics().places(kind)[i].detail, b.diagnostics().places(kind)[i].detail);
      }
    }
  }
}

// Long enough for several starts and many windows.
class LongProgram : public ::testing::Test {
 protected:
  static constexpr int64_t kAllocations = 150'000;
  const std::shared_ptr<const Trace> kept_ =
      Expanded("random_load", kMaxKeptEvents, {{"ops", kAllocations}});
  const std::shared_ptr<const Trace> again_ = Expanded("random_load", 0, {{"ops", kAllocations}});
};

TEST_F(LongProgram, StartsAnywhere) {
  const EventSource& source = *EventsOf(again_).source();
  ASSERT_GT(source.size(), size_t{2 * kAllocations});
  EXPECT_GT(source.NearestStart(source.size() - 1), source.NearestStart(0));
  std::mt19937 random(1);
  for (int i = 0; i < 30; ++i) {
    const size_t at = random() % EventsOf(kept_).size();
    for (size_t j = at; j < std::min(at + 5, EventsOf(kept_).size()); ++j) {
      ASSERT_EQ(EventsOf(kept_)[j], EventsOf(again_)[j]) << j;
    }
    ASSERT_EQ(EventsOf(kept_)[at / 2], EventsOf(again_)[at / 2]);
  }
}

TEST_F(LongProgram, SeveralThreadsGoThroughItAtOnce) {
  std::atomic<size_t> differences{0};
  std::vector<std::thread> threads;
  for (size_t thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&, thread] {
      // There are two walks at a time, as a run and its observer have them.
      const size_t half = EventsOf(kept_).size() / 2;
      for (size_t i = thread; i < half; ++i) {
        differences += EventsOf(kept_)[i] != EventsOf(again_)[i];
        differences += EventsOf(kept_)[half + i] != EventsOf(again_)[half + i];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(differences, 0u);
}

TEST(ProgramEvents, AnErrorAfterManyEventsIsTold) {
  CompileOptions options;
  options.max_events = 1000;
  absl::StatusOr<ProgramCode> code = OpenProgramCode("examples/random_load.txtpb", options);
  ASSERT_TRUE(code.ok());
  const absl::StatusOr<Trace> kept = ExpandProgram(*code), again = ExpandProgram(*code, 0);
  EXPECT_FALSE(kept.ok());
  EXPECT_EQ(kept.status(), again.status());
}

}  // namespace
}  // namespace memreplay::program

// What the simulator records, the simulator replays: for random programs under
// many settings, complete or with the head lost at any event. The recording
// holds what PyTorch's has; the rest has to be inferred.
#include <algorithm>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "sim/exact_replay.h"
#include "tests/sim/made_recording.h"

namespace memreplay {
namespace {

using testing::Made;
using testing::MakeRecording;
using ::testing::Message;
using testing::WithoutHead;

AllocatorConfig Expandable() {
  AllocatorConfig config;
  config.expandable_segments = true;
  return config;
}

AllocatorConfig MaxSplit() {
  AllocatorConfig config;
  config.max_split_size = MiB(24);
  return config;
}

AllocatorConfig Collecting() {
  AllocatorConfig config;
  config.per_process_memory_fraction = 0.9;
  config.garbage_collection_threshold = 0.5;
  return config;
}

AllocatorConfig Divisions() {
  AllocatorConfig config;
  config.roundup_power2_divisions.fill(4);
  return config;
}

struct Case {
  const char* name;
  Made made;
  uint64_t seeds = 40;
};

void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

ExactReplayResult Replay(std::shared_ptr<const Trace> trace, const Made& made,
                         Diagnostics* diagnostics = nullptr) {
  const Schedule schedule = Schedule::Build(std::move(trace), 0);
  if (diagnostics != nullptr) *diagnostics = schedule.diagnostics();
  return ReplayAsRecorded(schedule, made.config, DefaultTorchProfile(),
                          {.check_invariants = made.requests <= 500});
}

class ExactReplayProperty : public ::testing::TestWithParam<Case> {};

TEST_P(ExactReplayProperty, CompleteRecordingsAreExact) {
  Made made = GetParam().made;
  uint64_t events = 0;
  uint64_t ooms = 0;
  for (made.seed = 1; made.seed <= GetParam().seeds; ++made.seed) {
    SCOPED_TRACE(made.seed);
    Diagnostics diagnostics;
    const ExactReplayResult result =
        Replay(std::make_shared<const Trace>(MakeRecording(made)), made, &diagnostics);
    ASSERT_EQ(result.exactness_reason, "");
    ASSERT_EQ(result.matched_events, result.recorded_events);
    ASSERT_EQ(result.exact_until_event, result.recorded_events);
    ASSERT_TRUE(result.final_blocks.exact()) << result.final_blocks.first_mismatch;
    ASSERT_FALSE(diagnostics.has_errors());
    events += result.recorded_events;
    ooms += result.run.ooms;
  }
  RecordProperty("events", std::to_string(events));
  RecordProperty("ooms", std::to_string(ooms));
}

TEST_P(ExactReplayProperty, LostHeadsAreRebuilt) {
  Made made = GetParam().made;
  uint64_t hidden = 0;
  uint64_t revealed = 0;
  for (made.seed = 1; made.seed <= GetParam().seeds; ++made.seed) {
    const size_t events = MakeRecording(made).devices[0].events.size();
    for (size_t cut : {events / 7, events / 3, events / 2, events * 9 / 10, events}) {
      SCOPED_TRACE(Message() << "seed " << made.seed << " without " << cut << " events");
      const ExactReplayResult result = Replay(WithoutHead(made, cut), made);
      ASSERT_EQ(result.exactness_reason, "");
      ASSERT_EQ(result.exact_until_event, events - cut);
      // The rest of a request whose own event is lost is not compared.
      ASSERT_LE(result.recorded_events - result.compared_events, 1u);
      ASSERT_TRUE(result.final_blocks.exact()) << result.final_blocks.first_mismatch;
      hidden += result.start.hidden.size();
      revealed += result.start.revealed;
    }
  }
  RecordProperty("hidden", std::to_string(hidden));
  RecordProperty("revealed", std::to_string(revealed));
}

INSTANTIATE_TEST_SUITE_P(
    Programs, ExactReplayProperty,
    ::testing::Values(
        Case{"plain", {}}, Case{"small_only", {.largest = KiB(900)}},
        Case{"streams", {.streams = 3}}, Case{"empty_cache", {.empty_caches = true}},
        Case{"empty_cache_without_stacks", {.empty_caches = true, .stacks = false}},
        Case{"pressure", {.requests = 1500, .capacity = MiB(600), .streams = 2}},
        Case{"pressure_without_stacks",
             {.requests = 1500, .capacity = MiB(600), .empty_caches = true, .stacks = false}},
        Case{"late_frees", {.late_frees = true}},
        Case{"late_frees_pressure",
             {.requests = 1500, .capacity = MiB(600), .late_frees = true, .empty_caches = true}},
        Case{"divisions", {.config = Divisions()}},
        Case{"max_split", {.requests = 1500, .config = MaxSplit(), .capacity = MiB(700)}},
        Case{"collecting", {.requests = 1500, .config = Collecting(), .capacity = MiB(900)}},
        Case{"expandable", {.config = Expandable(), .streams = 2, .empty_caches = true}},
        Case{"expandable_pressure",
             {.requests = 1500, .config = Expandable(), .capacity = MiB(600)}}),
    [](const auto& parameters) { return std::string(parameters.param.name); });

}  // namespace
}  // namespace memreplay

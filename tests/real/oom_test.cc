// Tests the out-of-memory event of a real recording; exact_replay_test.cc says where the file comes
// from.
#include "report/ask/oom.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "sim/oom/oom_analysis.h"
#include "trace/formats/open_trace.h"

namespace memreplay {
namespace {

TEST(RealOom, ATrueShortage) {
  const char* shared = std::getenv("MEMREPLAY_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "MEMREPLAY_SHARED is not set: no real snapshots here";
  auto opened = OpenTrace(std::string(shared) + "/data/snapshots/nesta_oom_cold.pickle");
  ASSERT_TRUE(opened.ok()) << opened.status();
  const auto trace = std::make_shared<const Trace>(*std::move(opened));
  const Schedule schedule = Schedule::Build(trace, 0);
  const auto settings = ResolveSettings(*trace, {});
  ASSERT_TRUE(settings.ok());
  const auto analysis = AnalyseOom(schedule, *settings);
  ASSERT_TRUE(analysis.ok()) << analysis.status();
  ASSERT_TRUE(analysis->has_value());
  const proto::OutOfMemory oom = OomReport(schedule, *settings, &**analysis, {});
  EXPECT_EQ(oom.verdict(), proto::Verdict::true_shortage);
  EXPECT_EQ(oom.event_index(), 1117);
  EXPECT_TRUE(oom.recorded());
  EXPECT_EQ(oom.requested_bytes(), 402653184);
  EXPECT_EQ(oom.use().device_free_bytes(), 264634368);
  EXPECT_EQ(oom.obtainable_bytes() >> 20, 275);
  EXPECT_TRUE((*analysis)->scene.exact);
  EXPECT_TRUE((*analysis)->reproduced);
  // The parts add up to the whole.
  const proto::MemoryUse& use = oom.use();
  EXPECT_EQ(use.live_requested_bytes() + use.internal_bytes() + use.pending_bytes() +
                use.shared_free_bytes() + use.cached_segment_bytes(),
            use.reserved_bytes());
  EXPECT_EQ(use.reserved_bytes() + use.device_free_bytes() + use.outside_bytes(),
            use.capacity_bytes());
  for (const proto::Counterfactual& answer : oom.counterfactuals()) {
    if (answer.kind() == proto::Counterfactual::setting) {
      EXPECT_FALSE(answer.survives()) << answer.change();
    }
    if (answer.kind() == proto::Counterfactual::memory) {
      EXPECT_TRUE(answer.survives());
    }
  }
}

}  // namespace
}  // namespace memreplay

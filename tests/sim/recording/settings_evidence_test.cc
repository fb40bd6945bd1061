#include <memory>

#include "gtest/gtest.h"
#include "sim/recording/why_not_exact.h"
#include "tests/sim/support/made_recording.h"

namespace memreplay {
namespace {

using testing::Made;

AllocatorConfig Config(const char* conf) {
  AllocatorConfig config;
  EXPECT_TRUE(ParseAllocatorConf(conf, DefaultTorchProfile(), &config).ok()) << conf;
  return config;
}

// Returns what is found in a recording made under `recorded` if the file lists `listed`.
std::optional<OtherSettings> Find(const char* recorded, const char* listed) {
  const Made made = {.config = Config(recorded)};
  const Schedule schedule =
      Schedule::Build(std::make_shared<const Trace>(testing::MakeRecording(made)), 0);
  return FindOtherSettings(schedule, Config(listed), testing::ProfileOf(made));
}

TEST(FindOtherSettings, NothingUnderTheSettingsOfTheRecording) {
  for (const char* conf :
       {"", "expandable_segments:True", "roundup_power2_divisions:4", "large_segment_size_mb:64"}) {
    const auto found = Find(conf, conf);
    EXPECT_FALSE(found.has_value()) << conf << ": " << found->sign;
  }
}

TEST(FindOtherSettings, MappedPagesNeedExpandableSegments) {
  const auto found = Find("expandable_segments:True", "");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->event, 0u);
  EXPECT_EQ(found->sign, "event 0 mapped pages of an expandable segment");
}

TEST(FindOtherSettings, SegmentsOfCudaMallocSpeakAgainstThem) {
  const auto found = Find("", "expandable_segments:True");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->sign, "event 0 obtained a segment that is not expandable");
}

TEST(FindOtherSettings, TheSizeOfASegmentTellsHowRequestsWereRounded) {
  const auto found = Find("large_segment_size_mb:64", "");
  ASSERT_TRUE(found.has_value());
  EXPECT_NE(found->sign.find("obtained a segment of 67108864 bytes for a request of "),
            std::string::npos)
      << found->sign;
  EXPECT_TRUE(Find("roundup_power2_divisions:2", "").has_value());
}

}  // namespace
}  // namespace memreplay

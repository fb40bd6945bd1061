#include "sim/settings/size_rules.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace memreplay {
namespace {

AllocatorConfig WithDivisions(uint64_t divisions) {
  AllocatorConfig config;
  config.roundup_power2_divisions.fill(divisions);
  return config;
}

uint64_t Rounded(uint64_t size, uint64_t divisions, std::string_view release = "2.11") {
  return RoundSize(Bytes(size), WithDivisions(divisions), **FindTorchProfile(release)).value();
}

TEST(SizeRules, WithoutDivisions) {
  const struct {
    uint64_t request, rounded, segment;
    bool small;
  } kCases[] = {
      {1, 512, 2097152, true},
      {511, 512, 2097152, true},
      {512, 512, 2097152, true},
      {513, 1024, 2097152, true},
      {1048576, 1048576, 2097152, true},
      {1048577, 1049088, 20971520, false},
      {10485248, 10485248, 20971520, false},
      {10485249, 10485760, 10485760, false},
      {10485761, 10486272, 12582912, false},
      {(uint64_t{1} << 60) - 1, uint64_t{1} << 60, uint64_t{1} << 60, false},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(Rounded(c.request, 0), c.rounded) << c.request;
    EXPECT_EQ(AllocationSize(Bytes(c.rounded), AllocatorConfig{}).value(), c.segment) << c.request;
    EXPECT_EQ(IsSmall(Bytes(c.rounded)), c.small) << c.request;
  }
}

TEST(SizeRules, WithDivisions) {
  const struct {
    uint64_t request, divisions, rounded;
  } kCases[] = {
      {1200, 4, 1536},
      {2048, 4, 2048},
      {2049, 4, 2560},
      {2560, 4, 2560},
      {2561, 4, 3072},
      {5242881, 4, 6291456},
      {88080384, 4, 100663296},
      {88080384, 8, 92274688},
      {419430400, 2, 536870912},
      {3221225472, 4, 3221225472},
      {100, 4, 512},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(Rounded(c.request, c.divisions), c.rounded) << c.request << " / " << c.divisions;
  }
}

TEST(SizeRules, DivisionsOfOneKeepTheSizeInOldReleases) {
  EXPECT_EQ(Rounded(1000, 1, "2.1"), 1000u);
  EXPECT_EQ(Rounded(512, 1, "2.1"), 512u);
  EXPECT_EQ(Rounded(3, 1, "2.1"), 512u);
  EXPECT_EQ(Rounded(1000, 1, "2.4"), 1024u);
}

TEST(SizeRules, DivisionsArePerPowerOfTwo) {
  AllocatorConfig config;
  for (size_t i = 0; i < 16; ++i) config.roundup_power2_divisions[i] = i;
  EXPECT_EQ(RoundupPower2Divisions(Bytes(1), config), 0u);
  EXPECT_EQ(RoundupPower2Divisions(MiB(2) - Bytes(1), config), 0u);
  EXPECT_EQ(RoundupPower2Divisions(MiB(2), config), 1u);
  EXPECT_EQ(RoundupPower2Divisions(MiB(84), config), 6u);
  EXPECT_EQ(RoundupPower2Divisions(GiB(32) - Bytes(1), config), 14u);
  EXPECT_EQ(RoundupPower2Divisions(GiB(32), config), 15u);
  EXPECT_EQ(RoundupPower2Divisions(GiB(4096), config), 15u);
}

// Compares the rule in plain words (the next multiple of a part of the power of two below) with the
// arithmetic used.
TEST(SizeRules, AgreesWithThePlainWording) {
  uint64_t state = 88172645463325252ull;
  for (int i = 0; i < 20000; ++i) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    const uint64_t size = 1 + (state >> (20 + state % 40));
    const uint64_t divisions = uint64_t{1} << (state % 7);
    uint64_t expected = (size + 511) / 512 * 512;
    if (divisions > 1 && size > 512 * divisions) {
      uint64_t floor = 1;
      while (floor * 2 <= size) floor *= 2;
      const uint64_t step = floor / divisions;
      const uint64_t down = size / step * step;
      expected = size == floor || down == size ? size : down + step;
    }
    ASSERT_EQ(Rounded(size, divisions), expected) << size << " / " << divisions;
    ASSERT_EQ(expected % 512, 0u);
  }
}

TEST(SizeRules, LargeSegmentSizeIsConfigurable) {
  AllocatorConfig config;
  config.large_segment_size = MiB(32);
  EXPECT_EQ(AllocationSize(MiB(1), config), kSmallBuffer);
  EXPECT_EQ(AllocationSize(MiB(2), config), MiB(32));
  EXPECT_EQ(AllocationSize(MiB(11), config), MiB(12));
}

TEST(SizeRules, ExpandableReservation) {
  AllocatorConfig config;
  EXPECT_EQ(ExpandableReservation(Bytes(85028765696), config).value(), 95657361408u);
  config.expandable_segments_reserve.share = 0.5;
  EXPECT_EQ(ExpandableReservation(GiB(100), config), GiB(50));
  config.expandable_segments_reserve.share = 5;
  EXPECT_EQ(ExpandableReservation(GiB(100), config).value(), GiB(225).value() / 2);
  config.expandable_segments_reserve.share = 0;
  config.expandable_segments_reserve.bytes = GiB(40);
  EXPECT_EQ(ExpandableReservation(GiB(100), config), GiB(40));
  EXPECT_EQ(ExpandableReservation(GiB(8), config), GiB(9));
}

}  // namespace
}  // namespace memreplay

#include "report/words/sizes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

namespace memreplay {
namespace {

TEST(FormatSize, ThreeDigitsInBinaryUnits) {
  EXPECT_EQ(FormatSize(0), "0 B");
  EXPECT_EQ(FormatSize(512), "512 B");
  EXPECT_EQ(FormatSize(1023), "1023 B");
  EXPECT_EQ(FormatSize(1024), "1.00 KiB");
  EXPECT_EQ(FormatSize(1536), "1.50 KiB");
  EXPECT_EQ(FormatSize(20971520), "20.0 MiB");
  EXPECT_EQ(FormatSize(104857600), "100 MiB");
  EXPECT_EQ(FormatSize(int64_t{80} << 30), "80.0 GiB");
  EXPECT_EQ(FormatSize(79086477824), "73.7 GiB");
  EXPECT_EQ(FormatSize(-1536), "-1.50 KiB");
}

TEST(FormatSize, RoundsIntoTheNextUnit) {
  EXPECT_EQ(FormatSize((1 << 20) - 1), "1.00 MiB");
  EXPECT_EQ(FormatSize((1 << 20) - 1024), "1023 KiB");
  EXPECT_EQ(FormatSize(std::numeric_limits<int64_t>::max()), "8.00 EiB");
}

TEST(FormatSize, ExactAndChange) {
  EXPECT_EQ(FormatSizeExactly(20971520), "20.0 MiB (20,971,520 bytes)");
  EXPECT_EQ(FormatSizeExactly(100), "100 bytes");
  EXPECT_EQ(FormatSizeChange(1536), "+1.50 KiB");
  EXPECT_EQ(FormatSizeChange(-1536), "-1.50 KiB");
  EXPECT_EQ(FormatSizeChange(0), "0 B");
}

TEST(FormatCount, SeparatesThousands) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1000), "1,000");
  EXPECT_EQ(FormatCount(1000647), "1,000,647");
  EXPECT_EQ(FormatCount(-123456), "-123,456");
  EXPECT_EQ(FormatCount(1, "event"), "1 event");
  EXPECT_EQ(FormatCount(2, "event"), "2 events");
}

TEST(ParseSize, AcceptsUnits) {
  const struct {
    const char* text;
    uint64_t bytes;
  } kCases[] = {
      {"80GiB", uint64_t{80} << 30},
      {"80 gib", uint64_t{80} << 30},
      {"12GB", 12000000000},
      {"40G", uint64_t{40} << 30},
      {"1.5MiB", 1572864},
      {"0.5KiB", 512},
      {"0", 0},
      {"12345", 12345},
      {"7 B", 7},
      {"9223372036854775807", 9223372036854775807u},
  };
  for (const auto& c : kCases) {
    const auto size = ParseSize(c.text);
    ASSERT_TRUE(size.ok()) << c.text;
    EXPECT_EQ(size->value(), c.bytes) << c.text;
  }
}

TEST(ParseSize, RefusesTheRest) {
  for (const char* text : {"", "GiB", "80 GiBs", "-1", "1e9", "1..5GiB", "0.3", "0.0001KiB",
                           "9223372036854775808", "8EiB", "99999999999GiB"}) {
    const auto size = ParseSize(text);
    ASSERT_FALSE(size.ok()) << text;
    EXPECT_EQ(size.status().message(),
              "expected a size such as 80GiB, 512MiB, 12GB or a number of bytes, found '" +
                  std::string(text) + "'");
  }
}

TEST(FormatPart, SaysAllWhereNothingIsMissing) {
  EXPECT_EQ(FormatPart(1200, 1200), "all 1,200");
  EXPECT_EQ(FormatPart(11, 1200), "11 of 1,200");
}

}  // namespace
}  // namespace memreplay

#include <string>

#include "gtest/gtest.h"
#include "report/ask/parse_json.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

std::string Row(const std::string& call, int64_t size, int64_t median, int64_t refused = 0) {
  return StrCat("{\"call\":\"", call, "\",\"size\":\"", size, "\",\"count\":\"4\",\"refused\":\"",
                refused, "\",\"median_ns\":\"", median, "\"}");
}

constexpr int64_t kSmall = 2 << 20;
constexpr int64_t kLarge = 20 << 20;

TEST(DriverCostsTest, AddsUpTheCallsOfAPage) {
  const std::string json =
      StrCat("{\"card\":\"Card\",\"driver\":\"13.0\",\"date\":\"2026-01-02\",\"new\":1,\"times\":[",
             Row("cuMemAlloc", kSmall, 100), ",", Row("cuMemAlloc", kLarge, 300), ",",
             Row("cuMemAlloc", 64 << 20, 7, 4), ",", Row("cuMemFree", kSmall, 50), ",",
             Row("cuMemCreate", kSmall, 10), ",", Row("cuMemCreate", kLarge, 999), ",",
             Row("cuMemMap", kSmall, 20), ",", Row("cuMemSetAccess", kSmall, 30), ",",
             Row("cuMemUnmap", kSmall, 3), ",", Row("cuMemRelease", kSmall, 4), "]}");
  const auto parsed = ParseDriverCosts(json);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->card_text, "Card, driver 13.0, 2026-01-02");
  EXPECT_EQ(parsed->costs.segment_alloc.At(MiB(2)), 100);
  EXPECT_EQ(parsed->costs.segment_alloc.At(MiB(20)), 300);
  EXPECT_EQ(parsed->costs.segment_alloc.At(MiB(40)), 600);  // that of 64 MiB was refused
  EXPECT_EQ(parsed->costs.segment_free.At(MiB(2)), 50);
  EXPECT_EQ(parsed->costs.map.At(MiB(2)), 60);
  EXPECT_EQ(parsed->costs.map.At(MiB(20)), 600);  // that of 20 MiB was not mapped
  EXPECT_EQ(parsed->costs.unmap.At(MiB(2)), 7);
}

TEST(DriverCostsTest, SaysWhatIsMissing) {
  const auto none = ParseDriverCosts("[]");
  EXPECT_EQ(none.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(none.status().message().find("expected a table of costs"), absl::string_view::npos);
  const auto no_pages = ParseDriverCosts(
      StrCat("{\"times\":[", Row("cuMemAlloc", kSmall, 1), ",", Row("cuMemFree", kSmall, 1), "]}"));
  EXPECT_NE(no_pages.status().message().find("no times of cuMemCreate"), absl::string_view::npos);
}

}  // namespace
}  // namespace memreplay

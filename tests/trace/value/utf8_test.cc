#include "trace/value/utf8.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace memreplay {
namespace {

TEST(Utf8Length, OfWhatIsValid) {
  EXPECT_EQ(Utf8Length("a"), 1u);
  EXPECT_EQ(Utf8Length("\u00e4b"), 2u);
  EXPECT_EQ(Utf8Length("\u4e2d"), 3u);
  EXPECT_EQ(Utf8Length("\U0001f600"), 4u);
  EXPECT_EQ(Utf8Length("\U0010ffff"), 4u);
  for (const char* bad :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80", "\xc3", "\xe4\xb8", "\xc3(", "\xed\xa0\x80"}) {
    EXPECT_EQ(Utf8Length(bad), 0u) << bad;
  }
  EXPECT_EQ(Utf8Length("\xed\xa0\x80", /*surrogates_too=*/true), 3u);
}

TEST(CodePoint, IsTheNumber) {
  EXPECT_EQ(CodePoint("a"), 0x61u);
  EXPECT_EQ(CodePoint("\u00e4"), 0xe4u);
  EXPECT_EQ(CodePoint("\u4e2d"), 0x4e2du);
  EXPECT_EQ(CodePoint("\U0001f600"), 0x1f600u);
}

TEST(CutText, EndsBetweenCharacters) {
  const std::string text = "ab\u00e4\u4e2d\U0001f600";
  const std::string cut[] = {"",         "a",        "ab",       "ab",
                             "ab\u00e4", "ab\u00e4", "ab\u00e4", "ab\u00e4\u4e2d"};
  for (size_t most = 0; most < 11; ++most) {
    EXPECT_EQ(CutText(text, most), cut[std::min<size_t>(most, 7)]) << most;
  }
  EXPECT_EQ(CutText(text, 11), text);
  EXPECT_EQ(CutText("\x80\x80\x80\x80\x80\x80", 5).size(), 2u);  // no characters
}

TEST(ReplaceBadUtf8, EachByteThatBelongsToNoCharacter) {
  EXPECT_EQ(ReplaceBadUtf8("a\xff\u00e4\xc3", "?"), "a?\u00e4?");
  EXPECT_EQ(ReplaceBadUtf8("\xed\xa0\x80", "?"), "???");
  EXPECT_EQ(ReplaceBadUtf8("\xed\xa0\x80", "?", /*surrogates_too=*/true), "\xed\xa0\x80");
}

}  // namespace
}  // namespace memreplay

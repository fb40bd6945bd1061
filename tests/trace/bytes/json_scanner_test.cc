#include "trace/bytes/json_scanner.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace memreplay {
namespace {

std::string Written(std::string_view text) {
  std::string out;
  AppendJsonString(text, &out);
  return out;
}

TEST(AppendJsonString, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(Written("\x1b[31m\x7f\n"), R"("\u001b[31m\u007f\n")");
  EXPECT_EQ(Written("\xc2\x80 \xc2\x9b[31m \xc2\x9f \xc2\xa0"),
            "\"\\u0080 \\u009b[31m \\u009f \xc2\xa0\"");
  EXPECT_EQ(Written("\xe2\x80\xae \xf3\xa0\x80\x81"), R"("\u202e \udb40\udc01")");
}

TEST(AppendJsonString, IsReadAsTheSameBytes) {
  for (const std::string_view text :
       {"\x1b\x7f", "\xc2\x9b", "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\xed\xa0\x80", "h\xfbl",
        "\xc2", "\xc2\xc2\x9b", "\xe2\x80\xae", "\xf3\xa0\x80\x81", "a\"b\\c\t"}) {
    const std::string written = Written(text);
    EXPECT_EQ(UnescapeJson(std::string_view(written).substr(1, written.size() - 2)), text);
  }
}

}  // namespace
}  // namespace memreplay

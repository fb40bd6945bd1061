#include "cli/terminal.h"

#include <gtest/gtest.h>

namespace memreplay {
namespace {

TEST(ForTerminal, LeavesAFileAsItIs) {
  const std::string text = "device 0: OUT OF MEMORY\n  a  b\n\n";
  EXPECT_EQ(ForTerminal(text, {}), text);
}

TEST(ForTerminal, WhatDoesNotFitGoesOnBelowItsColumn) {
  EXPECT_EQ(ForTerminal("  torch              2.11 (inferred: a layout of three releases)\n",
                        {.width = 40}),
            "  torch              2.11 (inferred: a\n"
            "                     layout of three\n"
            "                     releases)\n");
  EXPECT_EQ(ForTerminal("device 0: one two three four five six seven\n", {.width = 24}),
            "device 0: one two three\n    four five six seven\n");
}

TEST(ForTerminal, AWordThatIsTooLongStaysWhole) {
  EXPECT_EQ(ForTerminal("  at /a/very/long/path/that/has/no/space.py\n", {.width = 20}),
            "  at /a/very/long/path/that/has/no/space.py\n");
}

TEST(ForTerminal, CountsCharactersNotBytes) {
  const std::string text = "\xc3\xa4\xc3\xa4\xc3\xa4 \xc3\xa4\xc3\xa4\n";
  EXPECT_EQ(ForTerminal(text, {.width = 6}), text);
}

TEST(ForTerminal, WhatIsWrongIsRed) {
  const TerminalLook look = {.colors = true};
  EXPECT_EQ(ForTerminal("device 0: OUT OF MEMORY twice.\n", look),
            "\x1b[1;31mdevice 0: OUT OF MEMORY twice.\x1b[0m\n");
  EXPECT_EQ(ForTerminal("  survives     more memory\n", look),
            "\x1b[32m  survives     more memory\x1b[0m\n");
  EXPECT_EQ(ForTerminal("  peak  1 GiB\n", look), "  peak  1 GiB\n");
}

}  // namespace
}  // namespace memreplay

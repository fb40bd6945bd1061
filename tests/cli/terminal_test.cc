#include "cli/io/terminal.h"

#include <gtest/gtest.h>

namespace memreplay {
namespace {

TEST(ForTerminal, LeavesAFileAsItIs) {
  const std::string text = "device 0: OUT OF MEMORY\n  a  b\n\n";
  EXPECT_EQ(ForTerminal(text, {}), text);
}

TEST(ForTerminal, WhatDoesNotFitGoesOnBelowItsColumn) {
  EXPECT_EQ(
      ForTerminal(std::string("  torch              2.11 (inferred: a layout of three releases)\n"),
                  {.width = 40}),
      "  torch              2.11 (inferred: a\n"
      "                     layout of three\n"
      "                     releases)\n");
  EXPECT_EQ(
      ForTerminal(std::string("device 0: one two three four five six seven\n"), {.width = 24}),
      "device 0: one two three\n    four five six seven\n");
}

TEST(ForTerminal, AWordThatIsTooLongIsParted) {
  EXPECT_EQ(
      ForTerminal(std::string("  at /a/very/long/path/that/has/no/space.py\n"), {.width = 20}),
      "  at /a/very/long/\n"
      "      path/that/has/\n"
      "      no/space.py\n");
  EXPECT_EQ(ForTerminal(std::string("  0123456789012345678901234567890123456789\n"), {.width = 20}),
            "  012345678901234567\n"
            "      89012345678901\n"
            "      23456789\n");
}

TEST(ForTerminal, NoLineIsWider) {
  const std::string text =
      "device 0: a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q, rstuvwxyzrstuvwxyzrstuvwxyz in one\n"
      "  label              something_that_is_as_long_as_no_column_is something short\n";
  for (int width = 12; width < 90; ++width) {
    const std::string out = ForTerminal(text, {.width = width});
    for (size_t begin = 0; begin < out.size(); begin = out.find('\n', begin) + 1) {
      EXPECT_LE(out.find('\n', begin) - begin, static_cast<size_t>(width)) << out;
    }
  }
}

TEST(HelpForTerminal, FillsParagraphsAnew) {
  const std::string text =
      "usage: memreplay look FILE... [flags]\n\n"
      "Shows what is in a file, without replaying it: devices, streams,\n"
      "and which PyTorch wrote it.\n\n"
      "flags:\n"
      "  --deep                  look longer, and\n"
      "                          tell more\n";
  EXPECT_EQ(HelpForTerminal(text, 0), text);
  EXPECT_EQ(HelpForTerminal(text, 48),
            "usage: memreplay look FILE... [flags]\n\n"
            "Shows what is in a file, without replaying it:\n"
            "devices, streams, and which PyTorch wrote it.\n\n"
            "flags:\n"
            "  --deep                  look longer, and tell\n"
            "                          more\n");
}

TEST(ProgressLine, KeepsTheNameOfTheFile) {
  EXPECT_EQ(ProgressLine("reading step.pickle", ": 5.0 s", 0),
            "memreplay: reading step.pickle: 5.0 s");
  for (int width = 40; width < 60; ++width) {
    const std::string line =
        ProgressLine("reading /a/long/way/to/step.pickle", ": 12 %, 5.0 s", width);
    EXPECT_LT(line.size(), static_cast<size_t>(width));
    EXPECT_NE(line.find("pickle: 12 %, 5.0 s"), line.npos);
  }
}

TEST(ForTerminal, CountsCharactersNotBytes) {
  const std::string text = "\xc3\xa4\xc3\xa4\xc3\xa4 \xc3\xa4\xc3\xa4\n";
  EXPECT_EQ(ForTerminal(text, {.width = 6}), text);
}

TEST(ForTerminal, ALineHasTheColorOfItsTone) {
  Text text(std::string("device 0 is plain, whatever it says: OUT OF MEMORY\n"));
  text.Add({"device 0", "out of memory.", Tone::kBadAnswer});
  text.Add({"PROBLEM", "it ran out.", Tone::kBad});
  Text more;
  more.Add({"", "survives     more memory", Tone::kGood});
  text.Append(more);
  text.Add({"peak", "1 GiB"});
  EXPECT_EQ(ForTerminal(text, {.colors = true}),
            "device 0 is plain, whatever it says: OUT OF MEMORY\n"
            "\x1b[1;31mdevice 0: out of memory.\x1b[0m\n"
            "\x1b[31m  PROBLEM: it ran out.\x1b[0m\n"
            "\x1b[32m  survives     more memory\x1b[0m\n"
            "  peak: 1 GiB\n");
  EXPECT_EQ(ForTerminal(text, {}), text.text);
}

}  // namespace
}  // namespace memreplay

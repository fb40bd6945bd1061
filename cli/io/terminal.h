// Formats text for a terminal: as wide as that, and with colours.
#pragma once

#include <string>
#include <string_view>

#include "report/words/lines.h"

namespace memreplay {

// How text on a stream should look.
struct TerminalLook {
  bool is_terminal = false;
  int width = 0;  // columns; 0: unlimited
  bool colors = false;
};

// Returns the look of standard output: no width and no colours unless it is a terminal, and no
// colours where NO_COLOR is set or TERM is "dumb".
TerminalLook LookOfOutput();

// Returns the number of columns of the terminal behind a descriptor, or 0 if it is unknown or no
// terminal.
int WidthOfTerminal(int descriptor);

// Returns "memreplay: reading step.pickle: 12 %, 3.1 s, 20 s left" in at most `width` columns (0 is
// unlimited). `activity` is shortened at its beginning, because the name of the file is at its end.
std::string ProgressLine(std::string_view activity, std::string_view rest, int width);

// Breaks lines that are too wide at spaces, and words that are wider than a line anywhere. The rest
// is indented to the line's second column, or a little. Answers are bold, what is wrong is red,
// what is right is green.
std::string ForTerminal(const Text& answer, const TerminalLook& look);

// Returns a help text in at most `width` columns (0 is unlimited). Where a line is too wide,
// paragraphs and the text to the right of flags are refilled.
std::string HelpForTerminal(std::string_view text, int width);

}  // namespace memreplay

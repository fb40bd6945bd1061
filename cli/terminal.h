// Text for people who read it on a terminal: no wider than that, with colours.
#ifndef MEMREPLAY_CLI_TERMINAL_H_
#define MEMREPLAY_CLI_TERMINAL_H_

#include <string>
#include <string_view>

#include "report/words/lines.h"

namespace memreplay {

// What a stream is, and how text on it should look.
struct TerminalLook {
  bool is_terminal = false;
  int width = 0;  // columns; 0: any
  bool colors = false;
};

// Returns the look of standard output: no width and no colours unless it is a terminal, and no
// colours where NO_COLOR is set or TERM is "dumb".
TerminalLook LookOfOutput();

// Returns the number of columns of the terminal that a descriptor is; 0: unknown, or none.
int WidthOfTerminal(int descriptor);

// "memreplay: reading step.pickle: 12 %, 3.1 s, 20 s left" in at most `width` columns (0:
// any): of `activity` the end is kept, where the name of the file is.
std::string ProgressLine(std::string_view activity, std::string_view rest, int width);

// Breaks lines that are too wide at spaces, and words that are wider than a line within; what
// follows stands below the text of the line's second column, or a little to the right of its
// beginning. Answers are bold, what is wrong is red, what is well is green.
std::string ForTerminal(const Text& answer, const TerminalLook& look);

// Returns a help in at most `width` columns (0: any). Where a line is too wide, paragraphs and the
// text to the right of flags are filled again.
std::string HelpForTerminal(std::string_view text, int width);

}  // namespace memreplay

#endif  // MEMREPLAY_CLI_TERMINAL_H_

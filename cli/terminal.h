// Text for people who read it on a terminal: no wider than that, with colours.
#ifndef MEMREPLAY_CLI_TERMINAL_H_
#define MEMREPLAY_CLI_TERMINAL_H_

#include <string>
#include <string_view>

namespace memreplay {

struct TerminalLook {
  int width = 0;  // columns; 0: any
  bool colors = false;
};

// Of standard output: nothing of both where it is no terminal. Without colours where
// NO_COLOR is set or TERM is "dumb".
TerminalLook LookOfOutput();

// Breaks lines that are too wide at spaces; what follows stands below the text of the
// line's second column, or a little to the right of its beginning. Answers are bold,
// what is wrong is red, what is well is green.
std::string ForTerminal(std::string_view text, const TerminalLook& look);

}  // namespace memreplay

#endif  // MEMREPLAY_CLI_TERMINAL_H_

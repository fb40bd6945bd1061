// Whole recordings and schedules with some of their numbers changed, which try what a snapshot's
// fields can say rather than what bytes can. They are the main input of the fuzzer and the test.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trace/value/trace.h"

namespace memreplay::fuzz {

struct MutatedRecording {
  std::string file;   // in one of the formats that traces are written in
  std::string other;  // the same before the changes
  // A command line; "FILE" and "OTHER", alone or before a value ("FILE=3"), stand for the files.
  std::vector<std::string> arguments;
};

// Reads the bytes as choices: a recording that the model makes (a release, settings, pools, late
// frees, a lost head, steps of training with stacks and notes, or a schedule), a format, a command
// line with up to three more flags, and then up to 24 changes of one field each: scaled, nudged,
// swapped with another's, set to an edge, copied, left out. `file` is empty if the format refuses
// what came of it. The same bytes give the same file.
MutatedRecording MutateRecording(std::string_view bytes);

// The command lines to choose from, each with one "FILE" or several, and perhaps an "OTHER".
const std::vector<std::vector<std::string>>& AttackedCommands();

// Returns a command line with the paths of the files.
std::vector<std::string> WithFiles(std::vector<std::string> words, std::string_view file,
                                   std::string_view other);

// Appends up to three flags that the command `words` has, with values of every form, as the bytes
// choose. What a command rejects is among them.
void AddFlags(std::string_view bytes, std::vector<std::string>* words);

}  // namespace memreplay::fuzz

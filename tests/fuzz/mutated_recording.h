// Whole recordings and programs with some of their numbers changed: what a snapshot's fields
// can say, rather than what bytes can. The fuzzer's and the test's main input.
#ifndef MEMREPLAY_TESTS_FUZZ_MUTATED_RECORDING_H_
#define MEMREPLAY_TESTS_FUZZ_MUTATED_RECORDING_H_

#include <string>
#include <string_view>
#include <vector>

#include "trace/value/trace.h"

namespace memreplay::fuzz {

struct MutatedRecording {
  std::string file;                    // in one of the formats that traces are written in
  std::vector<std::string> arguments;  // a command line; "FILE" stands for the file
};

// The bytes are read as choices: a recording that the model makes (a release, settings, pools,
// late frees, a lost head, or a program), a format, a command line, and then up to 24 changes
// of one field each: scaled, nudged, swapped with another's, set to an edge, copied, left out.
// `file` is empty where the format refuses what came of it. Same bytes, same file.
MutatedRecording MutateRecording(std::string_view bytes);

// The command lines that are chosen from, each with one "FILE" or several.
const std::vector<std::vector<std::string>>& AttackedCommands();

}  // namespace memreplay::fuzz

#endif  // MEMREPLAY_TESTS_FUZZ_MUTATED_RECORDING_H_

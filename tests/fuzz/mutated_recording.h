// Whole recordings and schedules with some of their numbers changed, which try what a snapshot's
// fields can say rather than what bytes can. They are the main input of the fuzzer and the test.
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

// Reads the bytes as choices: a recording that the model makes (a release, settings, pools, late
// frees, a lost head, or a schedule), a format, a command line, and then up to 24 changes of one
// field each: scaled, nudged, swapped with another's, set to an edge, copied, left out. `file` is
// empty if the format refuses what came of it. The same bytes give the same file.
MutatedRecording MutateRecording(std::string_view bytes);

// The command lines to choose from, each with one "FILE" or several.
const std::vector<std::vector<std::string>>& AttackedCommands();

}  // namespace memreplay::fuzz

#endif  // MEMREPLAY_TESTS_FUZZ_MUTATED_RECORDING_H_

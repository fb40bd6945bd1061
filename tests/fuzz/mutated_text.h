// Small texts that memreplay reads (schedules, op logs, error messages), with some of their numbers
// and lines changed.
#pragma once

#include <string_view>

#include "tests/fuzz/mutated_recording.h"

namespace memreplay::fuzz {

// Reads the bytes as choices: a text, a command line with up to three more flags, and up to 24
// changes: a number that becomes another, an edge, a fraction or an expression, and lines that are
// swapped, repeated or left out. The same bytes give the same file.
MutatedRecording MutateText(std::string_view bytes);

}  // namespace memreplay::fuzz

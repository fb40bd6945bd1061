// Finds the changes with which a script fits a GPU, by running it with them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiment/script_runner.h"
#include "proto/report.pb.h"
#include "record/run_program.h"
#include "sim/run/progress.h"
#include "trace/value/units.h"

namespace memreplay {

// A script, the GPU that it should fit, and what to try.
struct AdviceQuestion {
  RecordOptions script;           // and the name of the GPU
  Bytes memory;                   // of the GPU, as CUDA reports the total
  std::vector<std::string> only;  // remedies to try; empty: those that the script proposes
  size_t max_runs = 24;           // of pairs and triples, and again of values of `key`
  ScriptKey key;                  // an argument of the script
  int64_t value = 0;              // of `key`, in all runs; 0: what the script has by itself
  bool finds_largest = false;     // whether to find the largest value of `key` that fits
};

// Runs each remedy alone, then pairs and triples of them, cheapest first, until one fits that
// preserves what is computed. Settings do not cost a run. A combination is a row only if none of
// its parts fits without the others. For the unchanged script and for the rows, from the first on,
// it looks for the largest value of the question's key as long as runs are left. After an
// interruption it runs nothing more, and a note says what is missing. `progress` may be null.
// Errors: the unchanged script fails; Cancelled, if its run is interrupted.
absl::StatusOr<proto::Advice> AdviseScript(const AdviceQuestion& question, ScriptRunner* runner,
                                           ProgressSink* progress = nullptr);

}  // namespace memreplay

// Runs a script with values of one of its arguments: finds the largest that fits a GPU, or compares
// some.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "experiment/script_runner.h"
#include "proto/record.pb.h"
#include "record/run_program.h"
#include "sim/run/progress.h"

namespace memreplay {

// A number with decimals, as an integer.
struct Decimal {
  static constexpr size_t kMaxDecimals = 4;
  int64_t units = 0;
  int64_t scale = 1;  // units in 1: a power of ten
};

// Returns nullopt for other text than digits with at most kMaxDecimals after a point.
std::optional<Decimal> ParseDecimal(std::string_view text);

// The values that are tried: multiples of `step` up to `max`, or `listed`, in units of 1 / `scale`.
struct TriedValues {
  int64_t scale = 1;
  int64_t step = 1;
  int64_t max = 0;
  std::vector<int64_t> listed;
};

// Returns the values of an argument called `name`: where it is a share of something by its name,
// the step is 0.01 unless another is given. Errors: --step or --max out of range.
absl::StatusOr<TriedValues> TriedValuesOf(std::string_view name, std::optional<Decimal> step,
                                          std::optional<Decimal> max,
                                          const std::vector<Decimal>& listed);

// A script and what to run it with: each value on each card under each conf.
struct ValueQuestion {
  RecordOptions script;
  std::vector<std::string> cards;
  std::vector<std::string> confs;  // empty: that of the environment
  ScriptKey key;
  TriedValues values;
  bool finds_largest = false;  // searches multiples of the step; else the listed values are run
};

// Returns one case for each card and conf. After an interruption it runs nothing more, and the last
// case has what is known by then. `progress` may be null. Errors: those of the runs; Cancelled, if
// no run had ended when they were interrupted.
absl::StatusOr<proto::ScriptReport> TryValues(const ValueQuestion& question, ScriptRunner* runner,
                                              ProgressSink* progress = nullptr);

// Returns whether, of the largest values, one was found in each case or, of those listed, any fits.
bool ValuesFit(const ValueQuestion& question, const proto::ScriptReport& report);

}  // namespace memreplay

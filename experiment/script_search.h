// Finds the largest value of a script's argument with which it fits a GPU, by running it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/record.pb.h"

namespace memreplay {

// Returns the result of a recorded run, without its value. The run fits if memory did not run out
// and the script succeeded or was stopped where it was to be.
proto::ScriptRow ScriptRowOf(const proto::RecordReport& report);

// Returns whether a script's own words about too little memory say to raise the argument `key`, as
// in "try increasing `gpu_memory_utilization`" for --gpu-memory-utilization.
bool SaysToRaise(std::string_view refusal, std::string_view key);

// Finds the largest value with which a script fits, in as few runs as it can.
class ScriptSearch {
 public:
  static constexpr int64_t kMaxValue = int64_t{1} << 40;

  // Runs the script once for each value, several at once; returns one row for each value, in order.
  using RunValues = std::function<absl::StatusOr<std::vector<proto::ScriptRow>>(
      absl::Span<const int64_t> values)>;

  // `at_once`, at least 1, is how many values can be run in the time of one.
  ScriptSearch(RunValues run, size_t at_once)
      : run_(std::move(run)), at_once_(static_cast<int64_t>(at_once)) {}

  // Runs those of `values` that were not tried. Errors: those of the runs.
  absl::Status Try(const std::vector<int64_t>& values);

  // Returns the largest multiple of `step`, at most `most`, below the smallest multiple that was
  // seen to fail; 0 if no value is seen to fit. A value that is too small (ScriptRow) counts as one
  // below the largest. Guesses by a line through the peaks of the runs that fit, and falls back to
  // bisection. What Try() ran counts. Errors: those of the runs.
  // 1 <= step <= most <= kMaxValue.
  absl::StatusOr<int64_t> FindLargest(int64_t step, int64_t most);

  const std::map<int64_t, proto::ScriptRow>& tried() const { return tried_; }  // by value

 private:
  // What is known about multiples of a step.
  struct Edge {
    int64_t fits = 0;   // the largest, below `fails`
    int64_t lower = 0;  // the same, or a larger one that is too small
    int64_t fails;      // the smallest
  };

  Edge EdgeOf(int64_t step) const;
  int64_t Guess(int64_t step, const Edge& edge) const;

  RunValues run_;
  int64_t at_once_;
  std::map<int64_t, proto::ScriptRow> tried_;
};

}  // namespace memreplay

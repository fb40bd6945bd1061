// Stands in for a script that runs: its memory is made up.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "experiment/script_runner.h"

namespace memreplay {

// Answers each run by a function, until it is interrupted.
class FakeRunner final : public ScriptRunner {
 public:
  using RunOne = std::function<absl::StatusOr<proto::RecordReport>(const ScriptRun& run)>;

  explicit FakeRunner(RunOne run_one, size_t at_once = 1)
      : run_one_(std::move(run_one)), at_once_(at_once) {}

  size_t at_once() const override { return at_once_; }
  std::string_view stopped_by() const override { return stopped_ ? "SIGINT" : ""; }

  // The runs after the next `runs` of them are interrupted.
  void StopAfter(size_t runs) { left_ = runs; }
  // Of all runs that were requested, interrupted or not.
  const std::vector<ScriptRun>& runs() const { return runs_; }

 private:
  Answers RunAll(absl::Span<const ScriptRun> runs, ProgressSink*) override {
    Answers answers;
    for (const ScriptRun& run : runs) {
      runs_.push_back(run);
      stopped_ = stopped_ || left_ == 0;
      if (stopped_) {
        answers.emplace_back(absl::CancelledError("interrupted"));
        continue;
      }
      --left_;
      absl::StatusOr<proto::RecordReport> report = run_one_(run);
      if (!report.ok()) {
        answers.emplace_back(report.status());
        continue;
      }
      answers.emplace_back(Answer{*std::move(report), false});
    }
    return answers;
  }

  RunOne run_one_;
  size_t at_once_;
  size_t left_ = SIZE_MAX;
  bool stopped_ = false;
  std::vector<ScriptRun> runs_;
};

// Returns the number of --batch_size=N among the words of a run; 0 if there is none.
inline int64_t BatchSizeOf(const ScriptRun& run) {
  constexpr std::string_view kKey = "--batch_size=";
  for (const std::string& word : run.options.program) {
    if (word.starts_with(kKey)) return std::strtoll(word.c_str() + kKey.size(), nullptr, 10);
  }
  return 0;
}

// Returns the report of a run with one process that needs `needs` bytes of a GPU with `memory`.
inline proto::RecordReport ReportOf(int64_t needs, int64_t memory) {
  proto::RecordReport report;
  proto::RecordedProcess& process = *report.add_processes();
  process.set_ooms(needs > memory ? 1 : 0);
  proto::RecordedCard& card = *process.add_cards();
  card.set_peak_reserved(std::min(needs, memory));
  card.set_spare(std::max<int64_t>(memory - needs, 0));
  return report;
}

}  // namespace memreplay

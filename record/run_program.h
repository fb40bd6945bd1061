// One run of a PyTorch program that records, and what its processes left.
#ifndef MEMREPLAY_RECORD_RUN_PROGRAM_H_
#define MEMREPLAY_RECORD_RUN_PROGRAM_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/record.pb.h"
#include "trace/value/units.h"

namespace memreplay {

// Of all processes so far.
struct RecordProgress {
  uint64_t launches = 0;   // of kernels
  uint64_t peak_used = 0;  // bytes of a card
};

struct RecordOptions {
  // "train.py ARGS", "-m module ARGS" or a command such as "torchrun ...".
  std::vector<std::string> program;
  std::string python;  // the interpreter of scripts; "": the one that PyTorch is installed for
  // Of several processes, or of one in a job of several: snapshot.rank0.pickle ...
  std::string out = "snapshot.pickle";
  std::string card;  // of the table; "": the GPU there is
  // Of the simulated GPU, by CardOption::variable (record/card/options.h): what was asked for.
  std::map<std::string, std::string> card_options;
  // One process that stands for rank `rank` of `ranks`.
  std::optional<int64_t> ranks;
  std::optional<int64_t> rank;
  std::string stacks = "python";
  bool no_values = false;  // leave small tensors without values
  bool no_notes = false;   // leave the notes on modules, phases and tensors out
  std::optional<double> dynamic_fraction;
  std::optional<int64_t> unknown_limit;
  // Changes to make to the script: names of remedies (record/process/memreplay_record/remedies).
  std::vector<std::string> remedies;
  bool survey = false;  // find out which could help
  bool aslr = false;
  bool fast_init = false;
  // Where the program's output goes: "" as ours, "-" to stderr, else a file.
  std::string output;
  std::map<std::string, std::string> environment;  // besides ours
  // Receives every half second how far the program is, and returns the signal to send it; 0: none.
  // The same signal is sent once. Null: there is nothing to ask.
  std::function<int(const RecordProgress&)> watch;
};

// Runs it and gathers what its processes left: a report without replays and faults.
// Errors: InvalidArgument: nothing can be run: no such program, no PyTorch with CUDA, no such card,
// neither card nor GPU; a snapshot cannot be put where it belongs.
absl::StatusOr<proto::RecordReport> RunProgram(const RecordOptions& options);

}  // namespace memreplay

#endif  // MEMREPLAY_RECORD_RUN_PROGRAM_H_

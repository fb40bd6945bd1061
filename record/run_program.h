// Runs a PyTorch script while recording it, and gathers what its processes leave.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/record.pb.h"
#include "record/gather.h"
#include "record/temporary_folder.h"
#include "trace/value/units.h"

namespace memreplay {

// What to run, on which GPU, and what to record.
struct RecordOptions {
  // "train.py ARGS", "-m module ARGS" or a command such as "torchrun ...".
  std::vector<std::string> program;
  std::string python;   // the interpreter of scripts; "": the one that PyTorch is installed for
  SnapshotPlace place;  // RunProgram() adds the words of the command line to its inputs
  std::string card;     // a name of the table; "": the GPU of this machine
  // Requested options of the simulated GPU, by CardOption::variable (record/card/model/options.h).
  std::map<std::string, std::string> card_options;
  // One process stands for rank `rank` of `ranks`.
  std::optional<int64_t> ranks;
  std::optional<int64_t> rank;
  std::string stacks = "python";
  bool no_values = false;  // leave small tensors without values
  bool no_notes = false;   // leave out the notes on modules, phases and tensors
  std::optional<double> dynamic_fraction;
  std::optional<int64_t> unknown_limit;
  // Names of the remedies that change the script (record/process/memreplay_record/remedies).
  std::vector<std::string> remedies;
  // What the script's files have instead of their own text while it runs: by file, in order.
  std::vector<proto::Edit> edits;
  bool survey = false;  // find out which remedies could help
  bool aslr = false;
  bool fast_init = false;
  // The script ends where an optimizer begins one more step than this; unset: it ends by itself.
  std::optional<int64_t> steps;
  bool outside = false;  // on a real GPU, counts memory that is requested past PyTorch's allocator
  // Where the script's output goes: "" as ours, "-" to stderr, else a file.
  std::string output;
  // The script is stopped by SIGTERM once it has printed this; "": it ends by itself. Requires a
  // file as `output`.
  std::string until;
  // Hears what the script prints, unless `output` is a file. May be null.
  std::function<void(std::string_view)> heard;
  std::map<std::string, std::string> environment;  // in addition to ours
  // Called when the script has ended and its processes are known, before their snapshots, which say
  // how each ended, are moved to their place. May be null.
  Judge judge;
  // Called every half second with the progress so far; returns the signal to send to the script, or
  // 0 for none. The same signal is sent once. May be null.
  std::function<int(const RecordProgress&)> watch;
  // Called with a sentence each time that nothing has happened in the script's processes for so
  // long: no kernel was launched, and none of them computed. May be null.
  std::function<void(const std::string&)> tell;
  std::chrono::duration<double> quiet = std::chrono::minutes(1);
};

// A run that has ended.
struct ScriptRecording {
  TemporaryFolder folder;
  proto::RecordReport report;          // without replays and faults
  std::vector<std::string> snapshots;  // of each process: where it can be read
};

// Returns the command line, word by word: an interpreter is put in front of a script, but not of a
// command.
std::vector<std::string> CommandWords(const RecordOptions& options);

// Runs a script and gathers what its processes leave. Errors: InvalidArgument if nothing can be run
// (no such script, no PyTorch with CUDA, no such card, neither a card nor a GPU) or if a snapshot
// cannot be written to its place, which is found out before the script runs where possible. Where
// it is not, the error says where the recording is.
absl::StatusOr<ScriptRecording> RunProgram(const RecordOptions& options);

}  // namespace memreplay

// One run of a PyTorch program that records, and what it left.
#ifndef MEMREPLAY_CLI_RECORD_RUN_H_
#define MEMREPLAY_CLI_RECORD_RUN_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/stop_signal.h"
#include "proto/record.pb.h"
#include "trace/value/units.h"

namespace memreplay {

struct RecordOptions {
  // "train.py ARGS", "-m module ARGS" or a command such as "torchrun ...".
  std::vector<std::string> program;
  std::string python;  // the interpreter of scripts; "": the one that PyTorch is installed for
  // Of several processes, or of one in a job of several: snapshot.rank0.pickle ...
  std::string out = "snapshot.pickle";
  std::string card;               // of the table; "": the GPU there is
  std::optional<Bytes> capacity;  // of the card
  std::optional<Bytes> reserve;   // what the context and other processes take of it
  std::optional<Bytes> nccl;      // what a communicator of NCCL takes of it
  std::optional<int64_t> cards;
  std::string completion = "lagging";  // of work on side streams, or "at-once"
  // One process that stands for rank `rank` of `ranks`.
  std::optional<int64_t> ranks;
  std::optional<int64_t> rank;
  std::string stacks = "python";
  bool no_values = false;  // leave small tensors without values
  std::optional<double> dynamic_fraction;
  std::optional<int64_t> unknown_limit;
  bool aslr = false;
  bool fast_init = false;
  bool replay = true;  // whether each snapshot is replayed
  // Where the program's output goes: "" as ours, "-" to stderr, else a file.
  std::string output;
  std::map<std::string, std::string> environment;  // besides ours
  // Of a caller that runs several at once: who notes Ctrl-C. Null: the run notes it itself, and
  // shows how far it is.
  const StopSignal* stop = nullptr;
};

// Runs it and gathers what its processes left. Errors: nothing can be run: no such program, no
// PyTorch with CUDA, no such card, neither card nor GPU.
absl::StatusOr<proto::RecordReport> Record(const RecordOptions& options);

}  // namespace memreplay

#endif  // MEMREPLAY_CLI_RECORD_RUN_H_

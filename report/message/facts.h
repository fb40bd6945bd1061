// Reads what an error text says, before any conclusion is drawn from it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/message/amount.h"
#include "report/message/forms.h"
#include "report/message/log_scan.h"

namespace memreplay {

// A process that has memory of the GPU.
struct CardProcess {
  int64_t pid = 0;
  Amount bytes;
  bool has_bytes = false;  // Windows' driver prints N/A
  std::string name;        // per nvidia-smi
};

// A line of the user's own script, or of a library.
struct SourceFrame {
  std::string file;
  int64_t line = 0;
  std::string function;
  std::string code;
};

// What a frame shows directly.
enum class FrameHint : uint8_t {
  kOptimizerTemporaries,
  kOptimizerState,
  kLoss,
  kUpcastLogits,
  kEvaluation,
  kAttention,
  kWakeUp,
  kCacheCat,
  kConvolution,
  kLoading,
  kMoving,
  kPinning,
  kBackward,
  kRecomputing,  // activation checkpointing is on
  kDataParallel,
  kCount,
};

// Words somewhere in the text that decide what may be advised.
enum class Circumstance : uint8_t {
  kExpandableIsOn,
  kAsyncIsOn,
  kComfy,
  kWindows,
  kWsl,
  kGb10,       // NVIDIA's boards on which the GPU shares the host's memory
  kStrixHalo,  // AMD's
  kMig,
  kContainer,
  kVllm,
  kSglang,
  kRay,
  kDeepSpeed,
  kTrainingAndServing,  // one GPU for a trainer and a server, as in reinforcement learning
  kLoadingWeights,
  kXpu,
  kHip,
  kNpu,
  kCount,
};

// What was read in an error text.
struct Facts {
  const Form* form = nullptr;
  std::array<std::optional<Amount>, static_cast<size_t>(Quantity::kCount)> amounts;
  std::array<std::optional<double>, static_cast<size_t>(Number::kCount)> numbers;
  std::optional<int64_t> gpu;
  std::optional<int64_t> rank;
  std::string card;           // its name, per nvidia-smi or the text
  std::string shape;          // "[64,3,224,224] of float", from which the request was computed
  bool has_bad_size = false;  // of more digits than any memory has
  // Those that the message lists ("Process 4711 has"), or otherwise those of nvidia-smi.
  std::vector<CardProcess> processes;
  bool is_before_2_1 = false;  // which has no expandable segments: "already allocated"
  bool has_summary = false;    // torch.cuda.memory_summary()
  bool has_smi = false;
  bool knows_outside = false;  // what the text does not account for is known, of a simulated GPU
  bool is_recorded = false;    // by memreplay record, whose answer is in the text
  std::optional<SourceFrame> frame;  // the innermost frame of the user's own code
  std::string script;                // the script that the traceback begins with
  std::array<bool, static_cast<size_t>(FrameHint::kCount)> hints{};
  std::array<bool, static_cast<size_t>(Circumstance::kCount)> circumstances{};
  std::string conf;  // PYTORCH_CUDA_ALLOC_CONF as the text sets it; PyTorch's advice does not count
  std::optional<uint64_t> window_begin;  // places are from here on; unknown of UTF-16
  int64_t failures = 1;
  int64_t different = 1;

  const std::optional<Amount>& operator[](Quantity quantity) const {
    return amounts[static_cast<size_t>(quantity)];
  }
  std::optional<Amount>& operator[](Quantity quantity) {
    return amounts[static_cast<size_t>(quantity)];
  }
  const std::optional<double>& operator[](Number number) const {
    return numbers[static_cast<size_t>(number)];
  }
  bool operator[](FrameHint hint) const { return hints[static_cast<size_t>(hint)]; }
  bool operator[](Circumstance what) const { return circumstances[static_cast<size_t>(what)]; }
};

// Reads the facts of a text and nothing else; what it lacks is empty. `extract.form` must not be
// null.
Facts ReadFacts(const LogExtract& extract);
// Does the same for the message of an error whose frames, the innermost last, are known.
Facts ReadFacts(const LogExtract& extract, const std::vector<SourceFrame>& frames);

// Reads torch.cuda.memory_summary(), the last one in `text`. ReadFacts() calls this and the
// functions below.
void ReadMemorySummary(std::string_view text, Facts* facts);
// Reads nvidia-smi's tables, for the GPU that the facts name, or for the only one.
void ReadNvidiaSmi(std::string_view text, Facts* facts);
// Reads Python's tracebacks, and IPython's, before `end`.
void ReadTraceback(std::string_view text, size_t end, Facts* facts);
// Draws from the frames of an error, the innermost last, what they show.
void ReadFrames(const std::vector<SourceFrame>& frames, Facts* facts);

}  // namespace memreplay

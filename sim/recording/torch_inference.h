// Which PyTorch release a file is replayed as, and why that one: told from what its snapshot has
// and lacks.
#ifndef MEMREPLAY_SIM_RECORDING_TORCH_INFERENCE_H_
#define MEMREPLAY_SIM_RECORDING_TORCH_INFERENCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "sim/settings/torch_profile.h"
#include "trace/value/trace.h"

namespace memreplay {

// Why a release of PyTorch was chosen.
enum class ProfileReason : uint8_t {
  kGiven,    // requested
  kInFile,   // the file names it
  kDefault,  // a program that names none
  // Inferred, from here on.
  kLayout,          // the newest of the releases that write such files
  kReproduces,      // the newest of them under which the replay is exact
  kReproducesMost,  // of them the one under which it stays exact for longest
  kNewestKey,       // no release writes such files; the oldest that writes all their keys
  kUnknownLayout,   // no release writes all their keys; the default
};

// A release and why it was chosen; report/words/torch_reason.h has the words.
struct ProfileChoice {
  const TorchProfile* profile = nullptr;
  ProfileReason reason = ProfileReason::kGiven;
  // Of inferred ones: the releases that write such files, oldest first.
  std::vector<const TorchProfile*> fitting = {};
  // What older and newer releases would have written otherwise: "external_annotations",
  // "no compile_context", "its settings".
  std::vector<std::string> evidence = {};
  // kReproduces, kReproducesMost: the newest of `fitting`, and the recorded event at which its
  // replay differs.
  const TorchProfile* rejected = nullptr;
  uint64_t rejected_at = 0;

  bool inferred() const { return reason >= ProfileReason::kLayout; }
};

// Narrows the releases down by the keys that the file has and lacks, and by the
// keys of its settings string. Of several that fit, the newest. A file that fits none (edited, or
// made by another tool) is taken as the release that its newest key requires; one that says
// nothing, as the default.
ProfileChoice InferTorchProfile(const Trace& trace);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_RECORDING_TORCH_INFERENCE_H_

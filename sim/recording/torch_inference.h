// The PyTorch release as which a file is replayed, and the reason, inferred from what its snapshot
// contains and lacks.
#pragma once

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
  kDefault,  // a written schedule that names none
  // The following are inferred.
  kLayout,          // the newest of the releases that write such files
  kReproduces,      // the newest of them under which the replay is exact
  kReproducesMost,  // the one of them under which it stays exact for longest
  kNewestKey,       // no release writes such files; the oldest that writes all their keys
  kUnknownLayout,   // no release writes all their keys; the default
};

// A release and why it was chosen; report/words/answer.h has the words.
struct ProfileChoice {
  const TorchProfile* profile = nullptr;
  ProfileReason reason = ProfileReason::kGiven;
  // For inferred ones, the releases that write such files, oldest first.
  std::vector<const TorchProfile*> fitting = {};
  // What older and newer releases would have written differently: "external_annotations", "no
  // compile_context", "its settings".
  std::vector<std::string> evidence = {};
  // For kReproduces and kReproducesMost, the newest of `fitting`, and the recorded event at which
  // its replay differs.
  const TorchProfile* rejected = nullptr;
  uint64_t rejected_at = 0;

  bool inferred() const { return reason >= ProfileReason::kLayout; }
};

// Narrows the releases down by the keys that the file has and lacks, and by the keys of its
// settings string. Returns the newest if several fit. For a file that fits none (edited, or made by
// another tool) it returns the release that its newest key requires, and for one without evidence
// the default.
ProfileChoice InferTorchProfile(const Trace& trace);

}  // namespace memreplay

// Finds what is wrong, useless or risky in a PYTORCH_CUDA_ALLOC_CONF string for one release of
// PyTorch, without running anything.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/settings/torch_profile.h"

namespace memreplay {

enum class LintSeverity : uint8_t {
  kNote,     // a fact worth knowing
  kWarning,  // has no effect, or one that is easily unintended
  kError,    // this release rejects it
};

// Something wrong, useless or risky in a settings string.
struct LintFinding {
  LintSeverity severity = LintSeverity::kNote;
  std::string key;       // the key concerned; "" for the string as a whole
  std::string sentence;  // says what is wrong and what to do about it
};

// Returns errors first, then the rest in the order of the string. The last finding is a note on
// which environment variables this release reads.
std::vector<LintFinding> LintAllocatorConf(std::string_view conf, const TorchProfile& profile);

// Returns a hint such as "; did you mean expandable_segments?" for the first key that no release
// knows, or "" if there is no such key.
std::string ConfHint(std::string_view conf, const TorchProfile& profile);

}  // namespace memreplay

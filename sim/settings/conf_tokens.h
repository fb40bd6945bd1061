// The words of PYTORCH_CUDA_ALLOC_CONF and the numbers in them, as PyTorch's
// two parsers read them. Source: docs/fidelity.md [settings].
#ifndef MEMREPLAY_SIM_SETTINGS_CONF_TOKENS_H_
#define MEMREPLAY_SIM_SETTINGS_CONF_TOKENS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/settings/torch_profile.h"

namespace memreplay {

// Returns the environment variable to set for a build of PyTorch such as "2.9.0+rocm6.4": HIP's for
// AMD GPUs, else CUDA's, as for "".
std::string_view ConfVariable(std::string_view torch_version);

// Cuts `conf` at ',', ':', '[' and ']', each of which is a token itself. Removes spaces everywhere,
// also inside words.
std::vector<std::string> ConfTokens(std::string_view conf, const TorchProfile& profile);

// Return a number at the beginning of `text`, or nullopt if there is none or it is out of range.
// They ignore what follows, as PyTorch does ("40abc" is 40). Negative numbers wrap around to huge
// ones, as PyTorch's do.
std::optional<uint64_t> ConfInt(const std::string& text);       // 32 bits, signed
std::optional<uint64_t> ConfUnsigned(const std::string& text);  // 64 bits
std::optional<double> ConfDouble(const std::string& text);      // including inf and nan

// Returns the spelling of a key, or "" for none.
std::string_view ConfKeyName(ConfKey key);
// Returns the key spelled `name`, including aliases, whether or not a release knows it.
std::optional<ConfKey> FindConfKey(std::string_view name);

// Returns whether CUDA's own parser, the second of the two that 2.10 and later run, reads this key.
// The first one, which all accelerators share, reads the others.
bool IsCudaConfKey(ConfKey key);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_SETTINGS_CONF_TOKENS_H_

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

// Cuts `conf` at ',', ':', '[' and ']', each of which is a token itself. Space
// is dropped everywhere, also inside words.
std::vector<std::string> ConfTokens(std::string_view conf, const TorchProfile& profile);

// A number at the beginning of `text`; what follows it is ignored, as PyTorch
// does ("40abc" is 40). Null if there is none or it is out of range. Negative
// numbers wrap around to huge ones, as PyTorch's do.
std::optional<uint64_t> ConfInt(const std::string& text);       // of 32 bits, signed
std::optional<uint64_t> ConfUnsigned(const std::string& text);  // of 64 bits
std::optional<double> ConfDouble(const std::string& text);      // inf and nan included

// How a key is spelled, in the order of ConfKey; "" for none.
std::string_view ConfKeyName(ConfKey key);
// The key spelled `name`, aliases included, whether or not a release knows it.
std::optional<ConfKey> FindConfKey(std::string_view name);

// Returns whether CUDA's own parser, the second of the two that 2.10 and later run, reads this key;
// otherwise the first one does, which all accelerators share.
bool IsCudaConfKey(ConfKey key);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_SETTINGS_CONF_TOKENS_H_

// The words of PYTORCH_CUDA_ALLOC_CONF and the numbers in them, as PyTorch's
// two parsers read them. Source: docs/fidelity.md [settings]. This needs libc alone, for
// record/card.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memreplay {

// Keys of PYTORCH_CUDA_ALLOC_CONF.
enum class ConfKey : uint8_t {
  kBackend,
  kMaxSplitSizeMb,
  kMaxNonSplitRoundingMb,
  kGarbageCollectionThreshold,
  kRoundupPower2Divisions,
  kExpandableSegments,
  kReleaseLockOnCudamalloc,
  kPinnedUseCudaHostRegister,
  kPinnedNumRegisterThreads,
  kPinnedUseBackgroundThreads,
  kPinnedReserveSegmentSizeMb,
  kPinnedFreeCatchAll,
  kPinnedMaxRoundThresholdMb,
  kPinnedMaxCachedSizeMb,
  kGraphCaptureRecordStreamReuse,
  kPerProcessMemoryFraction,
  kLargeSegmentSizeMb,
  kThrowOnCudamallocOom,
  kExpandableSegmentsReserve,
  kExpandableSegmentsReserveByClass,
};
inline constexpr ConfKey kLastConfKey = ConfKey::kExpandableSegmentsReserveByClass;

// Returns the environment variable to set for a build of PyTorch such as "2.9.0+rocm6.4": HIP's for
// AMD GPUs, else CUDA's, as for "".
std::string_view ConfVariable(std::string_view torch_version);

// Cuts `conf` at ',', ':', '[' and ']', each of which is a token itself. Removes spaces everywhere,
// also inside words; the parser that all accelerators share (TorchProfile::conf_shared_parser)
// removes all white space.
std::vector<std::string> ConfTokens(std::string_view conf, bool shared_parser);

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

// The forms of errors about memory, as tables: the words by which each is found, and those by which
// its figures are found.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/types/span.h"

namespace memreplay {

// What a form is about.
enum class FormKind : uint8_t {
  kDevice,        // PyTorch's allocator of a device, with figures or cut off
  kAsync,         // the same under cudaMallocAsync
  kMps,           // Apple's
  kBlockLimit,    // a driver that refuses any block above a size
  kSilentDevice,  // the device's memory, without a figure
  kLibrary,       // cuBLAS, cuDNN, NCCL: not through PyTorch's allocator
  kPinned,        // page-locked memory of the host
  kHost,          // the host's memory
  kKilled,        // a process that the system ended
  kSharedMemory,  // /dev/shm
  kServing,       // an inference server that counts its memory
  kKernel,        // a kernel's resources: bytes of a block of threads
  kBadSize,       // a size that no script can mean
  kOther,         // another framework's
  kTable,         // a table, not a failure
  kMention,       // words about memory, of a failure that is not known
  kNone,          // a failure, or a warning, that is not about memory
};

// A form. The first row whose `anchor` and `near` are in the text applies.
struct Form {
  // At least kShortestAnchor bytes. A shorter one is searched for as a line of its own, in the end
  // of a text that has nothing else.
  std::string_view anchor;
  std::string_view near;  // also within kNearBefore and kNearAfter bytes of it; "": not needed
  FormKind kind;
  // The strongest of several forms within one failure applies. 0: not a failure.
  int strength;
  std::string_view name;         // for users
  std::string_view since = {};   // the release that introduced it; "" if all have it
  std::string_view begins = {};  // its text begins with the last of these before the anchor
};

inline constexpr size_t kShortestAnchor = 9;
inline constexpr size_t kNearBefore = 200;
inline constexpr size_t kNearAfter = 400;
inline constexpr int kMaxStrength = 5;

absl::Span<const Form> Forms();
// Returns words whose lines are kept of a long log although they are not failures: settings, and
// what a server says about its memory while it starts.
absl::Span<const std::string_view> ContextAnchors();

// The sizes that texts have.
enum class Quantity : uint8_t {
  kTried,
  kCapacity,
  kFree,
  kAllocated,
  kActive,
  kReserved,
  kUnallocated,
  kPrivatePools,
  kLimit,
  kOwnProcess,        // of the process that failed, including what is not PyTorch's
  kOtherAllocations,  // MPS: in the process, not PyTorch's
  kDesired,           // what a server is configured to take
  kWeights,
  kActivations,
  kNonTorch,
  kCache,  // KV cache that there is room for
  kCacheNeeded,
  kGraphs,
  kHostUsed,
  kHostTotal,
  kResident,  // of a killed process
  kPeakAllocated,
  kPeakReserved,
  kNonReleasable,
  kCardUsed,  // per nvidia-smi
  kRequired,  // bytes of a block of threads
  kAllowed,   // the same
  kCount,
};
// Return the name in the report, "requested_bytes", and the words for users, "requested".
std::string_view QuantityName(Quantity quantity);
std::string_view QuantityWords(Quantity quantity);

// Counts and ratios.
enum class Number : uint8_t {
  kUtilization,  // gpu_memory_utilization, mem_fraction_static
  kMaxLength,    // max_model_len
  kCacheTokens,
  kFittingLength,  // as the server estimates
  kMaxSequences,
  kBatch,
  kRetries,
  kOoms,
  kCount,
};

enum class Side : uint8_t {
  kAfter,   // the amount follows the words, perhaps after ':', '=' or blanks
  kBefore,  // the amount is directly before them
  kBytes,   // a number of bytes follows, without a unit
  kFirst,   // "(19.77/22.05 GiB)" follows, and the amount is its first number
  kSecond,
};

// An amount of memory in a form, next to the words `words`.
struct Field {
  std::string_view words;
  Side side;
  Quantity quantity;
};
// The same for a number that is not an amount of memory.
struct NumberField {
  std::string_view words;
  Number number;
};

// Return what is searched in the text of the failure; the first that is found counts.
absl::Span<const Field> MessageFields();
absl::Span<const NumberField> MessageNumbers();
// Return what is searched in everything kept of the log; the last that is found counts.
absl::Span<const Field> ContextFields();
absl::Span<const NumberField> ContextNumbers();

}  // namespace memreplay

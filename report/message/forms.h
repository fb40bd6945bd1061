// The forms that errors about memory have, as tables: by which words each is found, and by which
// its figures.
#ifndef MEMREPLAY_REPORT_MESSAGE_FORMS_H_
#define MEMREPLAY_REPORT_MESSAGE_FORMS_H_

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
  kSilentDevice,  // the device's memory, and no figure
  kLibrary,       // cuBLAS, cuDNN, NCCL: not through PyTorch's allocator
  kPinned,        // page-locked memory of the host
  kHost,          // the host's memory
  kKilled,        // a process that the system ended
  kSharedMemory,  // /dev/shm
  kServing,       // an inference server that counts its memory
  kKernel,        // a kernel's resources: bytes of a block of threads
  kBadSize,       // a size that no program means
  kOther,         // another framework's
  kTable,         // a table, no failure
  kMention,       // words about memory, no failure
};

// One form. The first row whose `anchor` and `near` are there is the one.
struct Form {
  std::string_view anchor;  // at least kShortestAnchor bytes
  std::string_view near;    // also within kNearBefore and kNearAfter bytes of it; "": nothing else
  FormKind kind;
  // Of several within one failure the highest speaks. 0: no failure.
  int strength;
  std::string_view name;    // for people
  std::string_view since;   // the release that brought it; "" if of all
  std::string_view begins;  // its text begins with the last of these before the anchor
};

inline constexpr size_t kShortestAnchor = 9;
inline constexpr size_t kNearBefore = 200;
inline constexpr size_t kNearAfter = 400;
inline constexpr int kMaxStrength = 5;

absl::Span<const Form> Forms();
// What is worth remembering of a long log though it is no failure: settings, and what a server
// says of its memory while it starts.
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
  kOwnProcess,        // of the process that failed, with what is not PyTorch's
  kOtherAllocations,  // MPS: in the process, not PyTorch's
  kDesired,           // what a server is set to take
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
// Returns the name in the report, "requested_bytes", and the words for people, "requested".
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
  kAfter,   // the amount follows the words, perhaps with ':', '=' or blanks between
  kBefore,  // it stands right before them
  kFirst,   // "(19.77/22.05 GiB)" follows: the first of the two
  kSecond,
};

// An amount of memory in a form, next to the words `words`.
struct Field {
  std::string_view words;
  Side side;
  Quantity quantity;
};
// The same of a number that is no amount of memory.
struct NumberField {
  std::string_view words;
  Number number;
};

// Looked for in the text of the failure; the first that is there counts.
absl::Span<const Field> MessageFields();
absl::Span<const NumberField> MessageNumbers();
// Looked for in all that is remembered of the log; the last one counts.
absl::Span<const Field> ContextFields();
absl::Span<const NumberField> ContextNumbers();

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_MESSAGE_FORMS_H_

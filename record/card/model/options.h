// The options of the simulated GPU, one row each. The card's settings, the flags of `record`, the
// key of the cache of `fit script` and README.md follow these rows.
#pragma once

#include <cstdint>
#include <string_view>

namespace memreplay::card {

// One option.
struct CardOption {
  enum Kind {
    kBytes,
    kCount,
    kWord,  // one of `values`
  };
  std::string_view flag = "";      // "--NAME VALUE" of record; empty: only the variable
  std::string_view variable = "";  // what the card reads: bytes as a number
  Kind kind = kBytes;
  uint64_t min = 0, max = 0;         // of kBytes and kCount
  std::string_view values = "";      // what follows the flag in --help; kWord: the words, "down|up"
  std::string_view by_default = "";  // for people
  std::string_view help = "";        // without the default
};

// More than any GPU has, and small enough that a sum of a few does not overflow.
inline constexpr uint64_t kMaxBytes = uint64_t{1} << 40;
inline constexpr uint64_t kMaxHostBytes = uint64_t{1} << 50;
inline constexpr uint64_t kMaxCards = 64;

inline constexpr CardOption kCapacity = {
    .flag = "capacity",
    .variable = "MEMREPLAY_CARD_CAPACITY",
    .kind = CardOption::kBytes,
    .min = 1,
    .max = kMaxBytes,
    .values = "SIZE|NAME",
    .by_default = "the table's",
    .help = "its memory as cudaMemGetInfo reports the total, or that of another GPU",
};
inline constexpr CardOption kReserve = {
    .flag = "reserve",
    .variable = "MEMREPLAY_CARD_RESERVE",
    .kind = CardOption::kBytes,
    .max = kMaxBytes,
    .values = "SIZE",
    .by_default = "by its multiprocessors",
    .help = "what the CUDA context and other processes take of it",
};
// No release documents NCCL's figure; it is what 4 A100 with NVLink took for more than two ranks
// (https://github.com/NVIDIA/nccl/issues/964).
inline constexpr uint64_t kNcclBytes = uint64_t{688} << 20;
inline constexpr CardOption kNccl = {
    .flag = "nccl",
    .variable = "MEMREPLAY_CARD_NCCL",
    .kind = CardOption::kBytes,
    .max = kMaxBytes,
    .values = "SIZE",
    .by_default = "688MiB",
    .help = "what an NCCL communicator of several ranks takes of it",
};
inline constexpr CardOption kCudnnWorkspace = {
    .flag = "cudnn-workspace",
    .variable = "MEMREPLAY_CARD_CUDNN_WORKSPACE",
    .kind = CardOption::kBytes,
    .max = kMaxBytes,
    .values = "SIZE",
    .by_default = "0",
    .help = "what each plan of cuDNN requests next to its tensors, which cuDNN alone knows",
};
inline constexpr CardOption kHostMemory = {
    .flag = "host-memory",
    .variable = "MEMREPLAY_CARD_HOST_MEMORY",
    .kind = CardOption::kBytes,
    .max = kMaxHostBytes,
    .values = "SIZE",
    .by_default = "no limit",
    .help = "how much memory of the host can be pinned; more fails as it would there",
};
inline constexpr CardOption kCards = {
    .flag = "cards",
    .variable = "MEMREPLAY_CARD_COUNT",
    .kind = CardOption::kCount,
    .min = 1,
    .max = kMaxCards,
    .values = "N",
    .by_default = "1",
    .help = "how many of them; with --ranks, on each machine",
};
inline constexpr CardOption kCompletion = {
    .flag = "completion",
    .variable = "MEMREPLAY_CARD_COMPLETION",
    .kind = CardOption::kWord,
    .values = "lagging|at-once",
    .by_default = "lagging",
    .help = "when work is done: when the host waits for it or 1,024 launches later, or at once",
};
inline constexpr CardOption kAddresses = {
    .flag = "addresses",
    .variable = "MEMREPLAY_CARD_ADDRESSES",
    .kind = CardOption::kWord,
    .values = "down|up|up:SIZE",
    .by_default = "down",
    .help =
        "the order of its addresses: down as on Linux, up as on Windows and WSL, where the driver "
        "has SIZE (108MiB) at the bottom until the first kernel",
};
inline constexpr CardOption kCopyLimit = {
    .variable = "MEMREPLAY_CARD_COPY_LIMIT",
    .kind = CardOption::kBytes,
    .max = kMaxBytes,
    .values = "SIZE",
    .by_default = "65536",
    .help = "copies of at most so many bytes are real",
};

inline constexpr const CardOption* kCardOptions[] = {&kCapacity,       &kReserve,    &kNccl,
                                                     &kCudnnWorkspace, &kHostMemory, &kCards,
                                                     &kCompletion,     &kAddresses,  &kCopyLimit};

}  // namespace memreplay::card

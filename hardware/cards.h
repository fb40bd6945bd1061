// The GPUs that memreplay knows by name: one table for every command. cards.cc has the rows, with
// the public source and date of each figure.
#ifndef MEMREPLAY_HARDWARE_CARDS_H_
#define MEMREPLAY_HARDWARE_CARDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memreplay {

// What NVIDIA's programming guide says about a compute capability.
struct Capability {
  int number = 0;  // 89 for 8.9
  int threads_per_multiprocessor = 0;
  int blocks_per_multiprocessor = 0;
  int shared_per_multiprocessor = 0;  // bytes
  int shared_per_block_optin = 0;     // bytes
};

struct Card {
  std::string name;   // what --card takes: "rtx-4090"
  std::string title;  // what the driver calls it: "NVIDIA GeForce RTX 4090"
  std::string group;  // of the list: "GeForce RTX 40"
  int capability = 0;
  // Bytes that cudaGetDeviceProperties and cudaMemGetInfo report as the total. Of the two systems'
  // figures the one that was asked for; Linux's unless only the other was found.
  uint64_t memory = 0;
  uint64_t linux_memory = 0;    // 0: no figure was found
  uint64_t windows_memory = 0;  // with the WDDM driver, and in WSL; 0: no figure was found
  // `memory` is what the maker or nvidia-smi says; the total that CUDA reports was not found, and
  // is usually one to three per cent less.
  bool is_nominal = false;
  int multiprocessors = 0;
  // From NVIDIA's data sheets and architecture white papers; 0: not known.
  int l2_bytes = 0;
  int clock_khz = 0;  // highest clock of the multiprocessors
  int memory_clock_khz = 0;
  int memory_bus_bits = 0;
  std::string source;  // where the memory's figures are from, and of when
};

// What a process with PyTorch takes of a GPU beside its allocator: CUDA's context, kernels, memory
// of cuBLAS and others. One figure for all GPUs, a stated assumption.
inline constexpr uint64_t kContextBytes = uint64_t{500} << 20;
inline constexpr char kContextSource[] =
    "0.49 GiB in two out-of-memory reports of PyTorch 2 (RTX 4090, A100): process less reserved";
inline constexpr char kCapabilitySource[] =
    "CUDA C++ Programming Guide, Technical Specifications per Compute Capability";
inline constexpr char kDataSheetSource[] = "NVIDIA's data sheets and architecture white papers";

// The GPU that `text` means:
//   * its name or title, or a part of one that no other GPU shares ("4090"); case, '-', '_' and ' '
//     do not matter. A whole name goes before a part of another's.
//   * that and ":windows" or ":linux": with that system's memory.
//   * "custom:12GiB,cc=8.9,sms=46": a GPU that is not in the table. `cc` is one of the table's.
// Nullopt: nothing or several match, or that system's memory is unknown; `error` then says which.
std::optional<Card> FindCard(std::string_view text, std::string* error);

// In the order of the list: by group, within one by age and size.
const std::vector<Card>& AllCards();

// The zero Capability if the table does not have it.
const Capability& CapabilityOf(const Card& card);

// The total of the GPU on which `bytes` were reserved or free, if the table leaves no doubt: the
// least total of at least `bytes`, where all those up to kMaxOutsideBytes above are nearly equal
// (boards of one kind differ by some tens of MiB from driver to driver). MIG slices are not
// considered.
std::optional<uint64_t> TotalOfCardWith(uint64_t bytes);
// What lies outside PyTorch's allocator on a GPU of one process, at most.
inline constexpr uint64_t kMaxOutsideBytes = uint64_t{2} << 30;

}  // namespace memreplay

#endif  // MEMREPLAY_HARDWARE_CARDS_H_

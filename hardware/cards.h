// The GPUs that memreplay knows by name, in one table for every command. cards.tsv has the rows,
// with the public source and date of each figure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memreplay {

// The limits that NVIDIA's programming guide gives for a compute capability.
struct Capability {
  int number = 0;  // 89 for 8.9
  int threads_per_multiprocessor = 0;
  int blocks_per_multiprocessor = 0;
  int shared_per_multiprocessor = 0;  // bytes
  int shared_per_block_optin = 0;     // bytes
  // What a multiprocessor computes per clock, where a product and its sum count as two operations:
  // in float32 without tensor cores, and in float16 with tensor cores, on dense operands and with
  // sums in float32.
  int float32_per_clock = 0;
  int float16_per_clock = 0;
  int pcie_generation = 0;
};

// A model of GPU, from the table or described on the command line.
struct Card {
  std::string name;   // as --card takes it: "rtx-4090"
  std::string title;  // as the driver reports it: "NVIDIA GeForce RTX 4090"
  std::string group;  // heading in the list: "GeForce RTX 40"
  int capability = 0;
  // The total in bytes that cudaGetDeviceProperties and cudaMemGetInfo report on the requested
  // system, or, if none was requested, on Linux if that figure is known, else on Windows.
  uint64_t memory = 0;
  uint64_t linux_memory = 0;    // 0: unknown
  uint64_t windows_memory = 0;  // with the WDDM driver, and in WSL; 0: unknown
  // True if `memory` is the figure of the manufacturer or nvidia-smi because the total that CUDA
  // reports, usually one to three per cent less, is unknown.
  bool is_nominal = false;
  int multiprocessors = 0;
  // From NVIDIA's data sheets and architecture white papers; 0: unknown.
  int l2_bytes = 0;
  int clock_khz = 0;  // highest clock of the multiprocessors
  int memory_clock_khz = 0;
  int memory_bus_bits = 0;
  // In float16 on dense operands, where tensor cores compute other than their number, the clock and
  // the capability say; 0: they do not.
  int tensor_tflops = 0;
  int pcie_lanes = 16;
  std::string source;  // source and date of the memory figures
};

inline constexpr char kCapabilitySource[] =
    "CUDA C++ Programming Guide, Technical Specifications per Compute Capability";
inline constexpr char kDataSheetSource[] = "NVIDIA's data sheets and architecture white papers";

// The peak rates of a GPU, in operations or bytes per second; 0: unknown. Operations are those of
// matrix products on dense operands with sums in float32.
struct Rates {
  double float32 = 0;
  double tf32 = 0;
  double float16 = 0;
  double bfloat16 = 0;
  double memory = 0;
  double host = 0;  // between the GPU and the host's memory, in one direction
};
inline constexpr char kRatesSource[] =
    "NVIDIA's architecture white papers, Pascal (2016) to RTX Blackwell (2025), and data sheets of "
    "2018 to 2025; PCI Express without its protocol's overhead";

// Finds the GPU that `text` names, which is one of:
//   * a name or title, or a part that no other GPU shares ("4090"). Case, '-', '_' and ' ' do not
//     matter. A whole name takes precedence over a part of another.
//   * one of these followed by ":windows" or ":linux", for the memory on that system.
//   * "custom:12GiB,cc=8.9,sms=46", a GPU that is not in the table; `cc` must be one of the
//     table's.
// Returns nullopt if none or several match or the memory on that system is unknown, and sets
// `error` to the reason.
std::optional<Card> FindCard(std::string_view text, std::string* error);

// Returns all GPUs by group, and within a group by age and size.
const std::vector<Card>& AllCards();

// Returns whether the GPU's memory is the host's: one pool serves both. That is so of Orin (8.7),
// Thor (11.0) and GB10 (12.1): github.com/sgl-project/sglang/pull/10075 (2025).
bool SharesHostMemory(const Card& card);

// Returns a zero Capability if the table does not have that of `card`.
const Capability& CapabilityOf(const Card& card);

// Returns the rates of a GPU. All are 0 if one of its clocks is unknown, and for GPUs whose
// memory's share of a bandwidth is: slices, and those that share the host's memory.
Rates RatesOf(const Card& card);

// Returns the total memory of a GPU on which `bytes` were reserved or free: the smallest total of
// at least `bytes`. Returns nullopt if the totals up to `bytes` + kMaxOutsideBytes are not nearly
// equal (boards of one kind differ by some tens of MiB between drivers). Ignores MIG slices.
std::optional<uint64_t> TotalOfCardWith(uint64_t bytes);
// The maximum outside PyTorch's allocator on a GPU with a single process.
inline constexpr uint64_t kMaxOutsideBytes = uint64_t{2} << 30;

}  // namespace memreplay

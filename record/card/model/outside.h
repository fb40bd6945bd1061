// Counts what a process has on its cards past PyTorch's allocator, by the library that requested
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "record/card/model/json.h"

namespace memreplay::card {

// Objects whose memory only NVIDIA's libraries know.
inline constexpr char kContextObject[] = "CUDA context";
inline constexpr char kModuleObject[] = "module";
inline constexpr char kKernelObject[] = "kernel";
inline constexpr char kBlasObject[] = "cuBLAS handle";
inline constexpr char kBlasLtObject[] = "cuBLASLt handle";
inline constexpr char kDnnObject[] = "cuDNN handle";
inline constexpr char kSolverObject[] = "cuSOLVER handle";
inline constexpr char kSparseObject[] = "cuSPARSE handle";
inline constexpr char kNcclObject[] = "NCCL communicator";
inline constexpr char kSingleNcclObject[] = "single-rank NCCL communicator";
inline constexpr char kGraphObject[] = "CUDA graph";
inline constexpr char kGraphLaunchObject[] = "captured kernel";

// What is reserved takes address space and no memory.
inline constexpr char kReservedAddresses[] = "cuMemAddressReserve";

// The memory and the objects that libraries have on the cards of a process, without the memory of
// PyTorch's allocator. The texts `what` must be constants.
class Outside {
 public:
  // What one library requested of one card in one way.
  struct Row {
    std::string library;  // "libcupy_backends.so"; "" for the executable itself
    const char* what;     // the function that allocated, or the object
    int card;
    bool is_object;
    uint64_t made = 0;            // so far
    uint64_t live = 0, most = 0;  // at once
    uint64_t now = 0, peak = 0;   // bytes, as requested
    // Those of them out of which PyTorch's allocator hands out blocks, because it got them from
    // this library (torch.cuda.MemPool with an allocator, as sleep modes have).
    uint64_t torchs_now = 0, torchs_peak = 0;
    uint64_t first_at = 0, peak_at = 0;  // `moment` of the first and of the peak
  };

  // How many allocations and frees PyTorch's allocator has made so far, on all cards.
  uint64_t moment = 0;

  // Counts memory that the function `what` allocated on a card. `caller` is an address in the code
  // that called; nothing but the card's context is counted if that is PyTorch's allocator. `key`
  // names the memory until it is freed: an address or a handle.
  void Allocated(const char* what, const void* caller, int card, uint64_t key, uint64_t bytes);
  // Likewise, for a caller known by name.
  void AllocatedBy(const char* library, const char* what, int card, uint64_t key, uint64_t bytes);
  void Freed(uint64_t key);
  // Notes where memory is, if `key` is counted, and that it is no longer there.
  void Mapped(uint64_t key, uint64_t address, uint64_t bytes);
  void Unmapped(uint64_t address);
  // Notes that PyTorch's allocator handed out a block at `address`.
  void HandedOut(uint64_t address) {
    if (!ranges_.empty()) FindOwner(address);
  }

  // Counts `count` objects, which `key` names until they are destroyed.
  void Made(const char* what, const void* caller, int card, uint64_t key, uint64_t count = 1);
  void Destroyed(const char* what, uint64_t key);

  void Write(Json* json) const;  // the rows in order of first call

 private:
  struct Piece {
    size_t row;
    uint64_t bytes, count;
    bool is_torchs = false;
  };
  struct Range {
    uint64_t bytes, key;
  };
  Piece Add(const char* library, const char* what, int card, bool is_object, uint64_t bytes,
            uint64_t count);
  void Remove(const Piece& piece);
  void UseCard(const char* library, int card);
  void FindOwner(uint64_t address);
  void GiveToTorch(Piece* piece);

  std::vector<Row> rows_;
  uint64_t contexts_ = 0;  // a bit for each card that has one
  std::unordered_map<uint64_t, Piece> memory_;
  std::map<uint64_t, Range> ranges_;  // by address
  // Where pages were mapped out of which PyTorch handed out blocks: others may take their place.
  std::set<uint64_t> torchs_addresses_;
  std::map<std::pair<const char*, uint64_t>, Piece> objects_;
};

}  // namespace memreplay::card

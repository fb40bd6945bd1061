// Counts what a process has on its cards past PyTorch's allocator, by the library that requested
// it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

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
    std::uint64_t made = 0;            // so far
    std::uint64_t live = 0, most = 0;  // at once
    std::uint64_t now = 0, peak = 0;   // bytes, as requested
  };

  // Counts memory that the function `what` allocated on a card. `caller` is an address in the code
  // that called; nothing but the card's context is counted if that is PyTorch's allocator. `key`
  // names the memory until it is freed: an address or a handle.
  void Allocated(const char* what, const void* caller, int card, std::uint64_t key,
                 std::uint64_t bytes);
  // Likewise, for a caller known by name.
  void AllocatedBy(const char* library, const char* what, int card, std::uint64_t key,
                   std::uint64_t bytes);
  void Freed(std::uint64_t key);

  // Counts `count` objects, which `key` names until they are destroyed.
  void Made(const char* what, const void* caller, int card, std::uint64_t key,
            std::uint64_t count = 1);
  void Destroyed(const char* what, std::uint64_t key);

  const std::vector<Row>& rows() const { return rows_; }  // in order of first call

 private:
  struct Piece {
    std::size_t row;
    std::uint64_t bytes, count;
  };
  Piece Add(const char* library, const char* what, int card, bool is_object, std::uint64_t bytes,
            std::uint64_t count);
  void Remove(const Piece& piece);
  void UseCard(const char* library, int card);

  std::vector<Row> rows_;
  std::uint64_t contexts_ = 0;  // a bit for each card that has one
  std::unordered_map<std::uint64_t, Piece> memory_;
  std::map<std::pair<const char*, std::uint64_t>, Piece> objects_;
};

}  // namespace memreplay::card

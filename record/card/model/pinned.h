// Pinned memory of the host: what CUDA pins, which lines of the script hold it, and what PyTorch's
// allocator of pinned memory would pin under other settings.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace memreplay::card {

// A model of PyTorch's allocator of pinned memory. It keeps freed blocks and never splits them. A
// free block serves a request for which a block of the same power of two would be made, if it is
// large enough; of several, the one that was freed last. Source: docs/record_internals.md, Host
// memory.
class HostAllocatorModel {
 public:
  // The settings pinned_max_round_threshold_mb and pinned_max_cached_size_mb, in bytes.
  struct Limits {
    std::uint64_t rounded_up_to = UINT64_MAX;  // larger requests are not rounded
    std::uint64_t kept_up_to = UINT64_MAX;     // larger blocks are neither rounded nor kept
  };
  explicit HostAllocatorModel(const Limits& limits) : limits_(limits) {}

  // Returns the size of the block that serves a request of `bytes`. O(free blocks of one power).
  std::uint64_t Take(std::uint64_t bytes);
  // Takes a block back, by its size.
  void Give(std::uint64_t block);
  void Empty();
  std::uint64_t now() const { return now_; }    // bytes that are pinned
  std::uint64_t peak() const { return peak_; }  // the maximum

 private:
  Limits limits_;
  std::array<std::vector<std::uint64_t>, 65> free_;  // sizes by power of two, the last freed last
  std::uint64_t now_ = 0, peak_ = 0;
};

// The pinned memory of a process. Not synchronised.
class Pinned {
 public:
  static constexpr std::size_t kModels = 2;  // the script's settings, and small blocks rounded only
  static constexpr std::uint64_t kRoundedInWhatIf = std::uint64_t{1} << 20;

  // What the requests of one line of the script hold.
  struct Line {
    std::uint64_t requested = 0, held = 0;  // bytes, as requested and in blocks
    std::uint64_t blocks = 0;
  };

  // Counts a range that the driver pinned or no longer pins; `by_torch` if PyTorch's allocator
  // called.
  void Add(std::uint64_t bytes, bool by_torch);
  void Remove(std::uint64_t bytes, bool by_torch);

  // Begins to follow PyTorch's allocator, which has these settings and pins nothing yet.
  void Follow(const HostAllocatorModel::Limits& limits);
  bool follows() const { return !models_.empty(); }

  // Notes a request of PyTorch's allocator by line number `line`. `key` names it until it is freed;
  // `block` is the size of the block that serves it.
  void Requested(std::uint64_t key, std::uint64_t bytes, std::uint64_t block, std::size_t line);
  // Notes that the script frees it, and returns a number for this free, 0 if the request is
  // unknown. Work on the GPU may still use it: the block serves no other request until Freed() was
  // called and each event is done that Recorded() named before.
  std::uint64_t Freeing(std::uint64_t key);
  void Recorded(std::uint64_t free, const void* event);
  void Freed(std::uint64_t free);
  void Done(const void* event);
  void Emptied();  // PyTorch's allocator released what it kept

  std::uint64_t now() const { return now_; }
  std::uint64_t peak() const { return peak_; }
  std::uint64_t peak_blocks() const { return peak_blocks_; }
  // What PyTorch's allocator had at the peak of what it had pinned, by line.
  std::uint64_t torch_peak() const { return torch_peak_; }
  const std::vector<Line>& peak_lines() const { return peak_lines_; }
  const std::vector<HostAllocatorModel>& models() const { return models_; }

 private:
  struct Request {
    std::uint64_t bytes = 0, block = 0;
    std::size_t line = 0;
    std::array<std::uint64_t, kModels> blocks{};  // by model
    int pending = 0;                              // events that are not done
  };
  void GiveBack(const Request& request);

  std::uint64_t now_ = 0, peak_ = 0, blocks_ = 0, peak_blocks_ = 0;
  std::uint64_t torch_now_ = 0, torch_peak_ = 0, noted_peak_ = 0;
  std::vector<HostAllocatorModel> models_;
  std::unordered_map<std::uint64_t, Request> live_;
  std::unordered_map<std::uint64_t, Request> waiting_;     // by number of the free
  std::unordered_map<const void*, std::uint64_t> events_;  // event -> number
  std::uint64_t frees_ = 0;
  std::vector<Line> lines_, peak_lines_;
};

}  // namespace memreplay::card

// Pinned memory of the host: what CUDA pins, which lines of the script hold it, and what PyTorch's
// allocator of pinned memory would pin under other settings.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/settings/conf_tokens.h"

namespace memreplay::card {

// A model of PyTorch's allocator of pinned memory. It keeps freed blocks and never splits them. A
// free block serves a request for which a block of the same power of two would be made, if it is
// large enough; of several, the one that was freed last. Source: docs/record_internals.md, Host
// memory.
class HostAllocatorModel {
 public:
  // The settings pinned_max_round_threshold_mb and pinned_max_cached_size_mb, in bytes.
  struct Limits {
    uint64_t rounded_up_to = UINT64_MAX;  // larger requests are not rounded
    uint64_t kept_up_to = UINT64_MAX;     // larger blocks are neither rounded nor kept
    bool reserves = false;  // blocks come out of one segment (kReserve); there is no model of it
  };
  static constexpr ConfKey kReserve = ConfKey::kPinnedReserveSegmentSizeMb;
  // Returns the limits of this PYTORCH_CUDA_ALLOC_CONF, as the releases that have these settings
  // (2.10 and newer) read it.
  static Limits LimitsOf(std::string_view conf);
  explicit HostAllocatorModel(const Limits& limits) : limits_(limits) {}

  // Returns the size of the block that serves a request of `bytes`. O(free blocks of one power).
  uint64_t Take(uint64_t bytes);
  // Takes a block back, by its size.
  void Give(uint64_t block);
  void Empty();
  bool reserves() const { return limits_.reserves; }
  uint64_t now() const { return now_; }    // bytes that are pinned
  uint64_t peak() const { return peak_; }  // the maximum

 private:
  Limits limits_;
  std::array<std::vector<uint64_t>, 65> free_;  // sizes by power of two, the last freed last
  uint64_t now_ = 0, peak_ = 0;
};

// The pinned memory of a process. Not synchronised.
class Pinned {
 public:
  static constexpr size_t kModels = 2;  // the script's settings, and small blocks rounded only
  static constexpr uint64_t kRoundedInWhatIf = uint64_t{1} << 20;

  // What the requests of one line of the script hold.
  struct Line {
    uint64_t requested = 0, held = 0;  // bytes, as requested and in blocks
    uint64_t blocks = 0;
  };

  // Counts a range that the driver pinned or no longer pins; `by_torch` if PyTorch's allocator
  // called.
  void Add(uint64_t bytes, bool by_torch);
  void Remove(uint64_t bytes, bool by_torch);

  // Begins to follow PyTorch's allocator, which has these settings and pins nothing yet.
  void Follow(const HostAllocatorModel::Limits& limits);
  bool follows() const { return !models_.empty(); }

  // Notes a request of PyTorch's allocator by line number `line`. `key` names it until it is freed;
  // `block` is the size of the block that serves it.
  void Requested(uint64_t key, uint64_t bytes, uint64_t block, size_t line);
  // Notes that the script frees it, and returns a number for this free, 0 if the request is
  // unknown. Work on the GPU may still use it: the block serves no other request until Freed() was
  // called and each event is done that Recorded() named before.
  uint64_t Freeing(uint64_t key);
  void Recorded(uint64_t free, const void* event);
  void Freed(uint64_t free);
  void Done(const void* event);
  void Emptied();  // PyTorch's allocator released what it kept

  uint64_t now() const { return now_; }
  uint64_t peak() const { return peak_; }
  uint64_t peak_blocks() const { return peak_blocks_; }
  // What PyTorch's allocator had at the peak of what it had pinned, by line.
  uint64_t torch_peak() const { return torch_peak_; }
  const std::vector<Line>& peak_lines() const { return peak_lines_; }
  const std::vector<HostAllocatorModel>& models() const { return models_; }

 private:
  struct Request {
    uint64_t bytes = 0, block = 0;
    size_t line = 0;
    std::array<uint64_t, kModels> blocks{};  // by model
    int pending = 0;                         // events that are not done
  };
  void GiveBack(const Request& request);

  uint64_t now_ = 0, peak_ = 0, blocks_ = 0, peak_blocks_ = 0;
  uint64_t torch_now_ = 0, torch_peak_ = 0, noted_peak_ = 0;
  std::vector<HostAllocatorModel> models_;
  std::unordered_map<uint64_t, Request> live_;
  std::unordered_map<uint64_t, Request> waiting_;     // by number of the free
  std::unordered_map<const void*, uint64_t> events_;  // event -> number
  uint64_t frees_ = 0;
  std::vector<Line> lines_, peak_lines_;
};

}  // namespace memreplay::card

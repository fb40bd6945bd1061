// Finds which of the blocks that existed at the beginning were older. From PyTorch 2.12 on this
// decides between cached blocks of one size. No file contains it, but recorded addresses show it,
// choice by choice.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "sim/model/caching_allocator.h"
#include "sim/run/run.h"
#include "trace/schedule/schedule.h"

namespace memreplay {

// A tie guide and observer that follows the recorded addresses where they are among equal blocks,
// and notes what each choice shows. It must be the allocator's tie guide and an observer of the
// same run.
class TieEvidence final : public TieGuide, public Observer {
 public:
  // `schedule` must outlive this.
  explicit TieEvidence(const Schedule& schedule) : schedule_(schedule) {}

  void OnRequest(size_t request) override;
  void OnEvent(const Event& /*event*/) override {}
  void OnRestore(uint64_t count, uint64_t stride) override {
    restored_ = count;
    stride_ = stride;
  }
  Block* Choose(Block* first, const FreeSet& set) override;
  void OnRelease(const Block& block) override;

  // Returns the rank of each restored tie (1, 2 ...) with which every choice and release seen
  // agrees; where nothing is known, it is the order of addresses. Empty if that order is already
  // right. O(choices * log).
  std::vector<uint64_t> Ranks();

  // Returns whether choices contradict each other, or are too many to compare all; valid after
  // Ranks().
  bool contradictory() const { return contradictory_; }

 private:
  struct Released {
    Address address;
    uint64_t tie;
  };
  uint64_t TieOf(const Block& block) const { return block.order / stride_; }
  // Returns whether there was too much to compare. Every choice is compared with every equal block,
  // so n choices of n equal blocks would be n * n.
  bool gave_up() const { return looked_at_ > kMaxLookedAt || before_.size() > kMaxPairs; }
  static constexpr uint64_t kMaxLookedAt = uint64_t{1} << 24;
  static constexpr size_t kMaxPairs = size_t{1} << 20;
  void Before(uint64_t older, uint64_t younger);
  void CompareReleases();

  const Schedule& schedule_;
  Address wanted_;  // recorded address of the current malloc
  uint64_t restored_ = 0;
  uint64_t stride_ = 1;
  size_t begin_ = 0;
  size_t end_ = 0;
  std::vector<Released> released_;  // by the current request
  absl::flat_hash_set<std::pair<uint64_t, uint64_t>> before_;
  uint64_t looked_at_ = 0;  // number of blocks
  bool contradictory_ = false;
};

}  // namespace memreplay

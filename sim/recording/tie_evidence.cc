#include "sim/recording/tie_evidence.h"

#include <functional>
#include <optional>
#include <queue>

#include "absl/container/flat_hash_map.h"
#include "sim/model/free_set.h"

namespace memreplay {

void TieEvidence::OnRequest(size_t request) {
  CompareReleases();
  const absl::Span<const uint32_t> begins = schedule_.recorded_begin();
  begin_ = begins[request];
  end_ = request + 1 < begins.size() ? begins[request + 1] : schedule_.recorded().size();
  wanted_ = Address();
  for (size_t i = begin_; i < end_; ++i) {
    const Event& event = schedule_.recorded()[i];
    if (event.kind == EventKind::kAlloc) wanted_ = event.address;
  }
}

Block* TieEvidence::Choose(Block* first, const FreeSet& set) {
  if (wanted_.is_null() || gave_up()) return first;
  // A block before unmapped pages counts as larger, see GetFreeBlock().
  const auto has_room = [](const Block* block) {
    return block->next != nullptr && !block->next->mapped;
  };
  Block* chosen = nullptr;
  for (Block* block = first; block != nullptr && block->size == first->size;
       block = set.Next(block)) {
    if (block->address == wanted_) chosen = block;
    ++looked_at_;
  }
  if (chosen == nullptr) return first;
  if (has_room(chosen)) return chosen;
  for (Block* block = first; block != nullptr && block->size == first->size;
       block = set.Next(block)) {
    if (block != chosen && !has_room(block)) Before(TieOf(*chosen), TieOf(*block));
  }
  return chosen;
}

void TieEvidence::OnRelease(const Block& block) {
  released_.push_back({block.address, TieOf(block)});
}

// Equal segments are released in the order in which they would be chosen.
void TieEvidence::CompareReleases() {
  if (released_.size() < 2) return released_.clear();
  absl::flat_hash_map<uint64_t, uint64_t> ties;  // by address
  for (const Released& released : released_) {
    ties.emplace(released.address.value(), released.tie);
  }
  const auto tie_at = [&ties](Address address) -> uint64_t {
    const auto it = ties.find(address.value());
    return it != ties.end() ? it->second : 0;
  };
  std::optional<Event> last;
  uint64_t last_tie = 0;
  for (size_t i = begin_; i < end_; ++i) {
    const Event& event = schedule_.recorded()[i];
    if (event.kind != EventKind::kSegmentFree) continue;
    const uint64_t tie = tie_at(event.address);
    if (last.has_value() && last->size == event.size && last->stream == event.stream &&
        last->pool == event.pool && last_tie != 0 && tie != 0) {
      Before(last_tie, tie);
    }
    last = event;
    last_tie = tie;
  }
  released_.clear();
}

void TieEvidence::Before(uint64_t older, uint64_t younger) {
  if (older != younger) before_.emplace(older, younger);
}

std::vector<uint64_t> TieEvidence::Ranks() {
  const uint64_t count = restored_;
  CompareReleases();
  contradictory_ = gave_up();
  std::vector<std::vector<uint64_t>> younger(count + 1);
  std::vector<uint64_t> older_left(count + 1, 0);
  bool in_order = true;
  for (const auto& [a, b] : before_) {     // in any order
    if (a > count || b > count) continue;  // it was made during the replay
    younger[a].push_back(b);
    ++older_left[b];
    in_order &= a < b;
  }
  if (in_order) return {};
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> next;
  for (uint64_t tie = 1; tie <= count; ++tie) {
    if (older_left[tie] == 0) next.push(tie);
  }
  std::vector<uint64_t> ranks(count + 1, 0);
  uint64_t rank = 0;
  while (!next.empty()) {
    const uint64_t tie = next.top();
    next.pop();
    ranks[tie] = ++rank;
    for (uint64_t other : younger[tie]) {
      if (--older_left[other] == 0) next.push(other);
    }
  }
  for (uint64_t tie = 1; tie <= count; ++tie) {
    if (ranks[tie] != 0) continue;
    contradictory_ = true;
    ranks[tie] = ++rank;
  }
  return ranks;
}

}  // namespace memreplay

#include "sim/workload/packing.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "sim/settings/size_rules.h"

namespace memreplay {
namespace {

using Indexes = std::vector<uint32_t>;
constexpr uint64_t kUnplaced = ~uint64_t{0};

// Returns for each moment up to the last end how many of `items` (ascending by begin) begin before
// it.
Indexes BegunBefore(absl::Span<const Lifetime> lifetimes, const Indexes& items) {
  uint32_t last = 0;
  for (const uint32_t item : items) last = std::max(last, lifetimes[item].end);
  Indexes begun(last + 1);
  uint32_t moment = 0;
  for (uint32_t count = 0; count < items.size(); ++count) {
    for (; moment <= lifetimes[items[count]].begin; ++moment) begun[moment] = count;
  }
  for (; moment <= last; ++moment) begun[moment] = static_cast<uint32_t>(items.size());
  return begun;
}

// The memory of an allocator without lookahead: holes, and no end.
class Arena {
 public:
  uint64_t TakeBestFit(uint64_t size) {
    const auto hole = by_size_.lower_bound({size, 0});
    if (hole == by_size_.end()) return TakeAtEnd(size);
    return TakeFrom(by_offset_.find(hole->second), size);
  }
  void Give(uint64_t offset, uint64_t size) {
    auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.end() && next->first == offset + size) {
      size += next->second;
      next = Remove(next);
    }
    if (next != by_offset_.begin()) {
      const auto previous = std::prev(next);
      if (previous->first + previous->second == offset) {
        offset = previous->first;
        size += previous->second;
        Remove(previous);
      }
    }
    Add(offset, size);
  }
  uint64_t height() const { return height_; }

 private:
  using Holes = absl::btree_map<uint64_t, uint64_t>;

  void Add(uint64_t offset, uint64_t size) {
    by_offset_[offset] = size;
    by_size_.insert({size, offset});
  }
  Holes::iterator Remove(Holes::iterator hole) {
    by_size_.erase({hole->second, hole->first});
    return by_offset_.erase(hole);
  }
  uint64_t TakeFrom(Holes::iterator hole, uint64_t size) {
    const auto [offset, room] = *hole;
    Remove(hole);
    if (room > size) Add(offset + size, room - size);
    return offset;
  }
  // Extends a hole that reaches the end.
  uint64_t TakeAtEnd(uint64_t size) {
    uint64_t offset = height_;
    if (!by_offset_.empty()) {
      const auto last = std::prev(by_offset_.end());
      if (last->first + last->second == height_) {
        offset = last->first;
        Remove(last);
      }
    }
    height_ = offset + size;
    return offset;
  }

  uint64_t height_ = 0;
  Holes by_offset_;
  absl::btree_set<std::pair<uint64_t, uint64_t>> by_size_;
};

// Places `items` (ascending by begin) in order of arrival, best fit. Returns the height reached.
uint64_t PlaceAsTheyCome(absl::Span<const Lifetime> lifetimes, const Indexes& items,
                         std::vector<uint64_t>& offset) {
  const Indexes by_end = ByEnd(lifetimes, items);
  Arena arena;
  size_t ended = 0;
  for (const uint32_t item : items) {
    for (; lifetimes[by_end[ended]].end <= lifetimes[item].begin; ++ended) {
      const uint32_t gone = by_end[ended];
      arena.Give(offset[gone], lifetimes[gone].rounded.value());
    }
    offset[item] = arena.TakeBestFit(lifetimes[item].rounded.value());
  }
  return arena.height();
}

// An index of the placed items that finds those in use together with a given one. Either the item
// begins within the other's life, or its life contains the other's begin.
class PlacedItems {
 public:
  // `items` are those that may be placed, ascending by begin; they are numbered in this order.
  PlacedItems(absl::Span<const Lifetime> lifetimes, const Indexes& items)
      : lifetimes_(lifetimes),
        items_(items),
        begun_(BegunBefore(lifetimes, items)),
        leaves_(std::bit_ceil(items.size() + 1)),
        placed_((items.size() + 63) / 64),
        covering_(2 * leaves_) {}

  void Add(uint32_t number) {
    placed_[number / 64] |= uint64_t{1} << (number % 64);
    // Later items that begin within its life have the numbers (number, end).
    uint64_t from = number + 1 + leaves_;
    uint64_t to = begun_[lifetimes_[items_[number]].end] + leaves_;
    for (; from < to; from /= 2, to /= 2) {
      if (from % 2 == 1) covering_[from++].push_back(number);
      if (to % 2 == 1) covering_[--to].push_back(number);
    }
  }

  template <typename Visit>
  void VisitTogetherWith(uint32_t number, const Visit& visit) const {
    for (uint64_t node = number + leaves_; node > 0; node /= 2) {
      for (const uint32_t placed : covering_[node]) visit(placed);
    }
    const uint32_t end = begun_[lifetimes_[items_[number]].end];
    for (uint32_t at = number + 1; at < end; at = (at / 64 + 1) * 64) {
      uint64_t word = placed_[at / 64] >> (at % 64);
      if (end - at < 64) word &= (uint64_t{1} << (end - at)) - 1;
      for (; word != 0; word &= word - 1) {
        visit(at + static_cast<uint32_t>(std::countr_zero(word)));
      }
    }
  }

 private:
  absl::Span<const Lifetime> lifetimes_;
  const Indexes& items_;
  const Indexes begun_;
  const uint64_t leaves_;
  std::vector<uint64_t> placed_;   // one bit per number
  std::vector<Indexes> covering_;  // segment tree over numbers
};

// Sorts words by their upper halves, a byte of them at a time, from the lowest on; bytes in which
// all are equal cost nothing, and blocks mostly begin at multiples of a large size. Returns where
// the sorted words are, in one of two arrays with room for them.
const uint64_t* SortByUpperHalf(uint64_t* words, size_t size, uint64_t* spare) {
  if (size < 64) {
    std::sort(words, words + size);
    return words;
  }
  uint32_t counts[4][256] = {};
  for (size_t i = 0; i < size; ++i) {
    ++counts[0][words[i] >> 32 & 0xff];
    ++counts[1][words[i] >> 40 & 0xff];
    ++counts[2][words[i] >> 48 & 0xff];
    ++counts[3][words[i] >> 56];
  }
  for (unsigned byte = 0; byte < 4; ++byte) {
    const unsigned shift = 32 + 8 * byte;
    uint32_t* const places = counts[byte];
    if (places[words[0] >> shift & 0xff] == size) continue;
    uint32_t place = 0;
    for (unsigned i = 0; i < 256; ++i) place += std::exchange(places[i], place);
    for (size_t i = 0; i < size; ++i) spare[places[words[i] >> shift & 0xff]++] = words[i];
    std::swap(words, spare);
  }
  return words;
}

// Places `items` (ascending by begin) in the order `before`, each at the lowest offset that is free
// for all of its life. Returns the height reached, or `limit` (below 2 TiB) as soon as an item
// would end there or higher, because another packing is then as good.
uint64_t PlaceInOrder(absl::Span<const Lifetime> lifetimes, const Indexes& items,
                      const std::function<bool(uint32_t, uint32_t)>& before, uint64_t limit,
                      std::vector<uint64_t>& offset) {
  Indexes order(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return before(items[a], items[b]); });
  PlacedItems placed(lifetimes, items);
  // Intervals [from, to) in units of 512 bytes, each bound in half of a word: such words are sorted
  // much faster than pairs. Those that begin at the same place may come in any order.
  std::vector<uint64_t> intervals(items.size());  // of placed items, by number
  std::vector<uint64_t> taken(items.size()), spare(items.size());
  uint64_t height = 0;
  for (const uint32_t number : order) {
    const uint64_t size = lifetimes[items[number]].rounded.value();
    uint64_t* end = taken.data();
    placed.VisitTogetherWith(number, [&](uint32_t other) { *end++ = intervals[other]; });
    const auto count = static_cast<size_t>(end - taken.data());
    const uint64_t* const sorted = SortByUpperHalf(taken.data(), count, spare.data());
    uint64_t lowest = 0;
    for (size_t i = 0; i < count; ++i) {
      const uint64_t both = sorted[i];
      if ((both >> 32) * kMinBlockSize.value() >= lowest + size) break;
      lowest = std::max(lowest, (both & 0xffffffff) * kMinBlockSize.value());
    }
    if (lowest + size >= limit) return limit;
    offset[items[number]] = lowest;
    intervals[number] =
        lowest / kMinBlockSize.value() << 32 | (lowest + size) / kMinBlockSize.value();
    height = std::max(height, lowest + size);
    placed.Add(number);
  }
  return height;
}

// Returns the number of pairs of `items` (ascending by begin) in use at the same time.
uint64_t PairsTogether(absl::Span<const Lifetime> lifetimes, const Indexes& items) {
  const Indexes begun = BegunBefore(lifetimes, items);
  uint64_t pairs = 0;
  for (size_t i = 0; i < items.size(); ++i) pairs += begun[lifetimes[items[i]].end] - i - 1;
  return pairs;
}

// Returns the largest items that stay within the budget, and the rest, both by begin.
std::pair<Indexes, Indexes> LargestWithin(absl::Span<const Lifetime> lifetimes, uint64_t budget) {
  Indexes all(lifetimes.size());
  std::iota(all.begin(), all.end(), 0);
  if (PairsTogether(lifetimes, all) <= budget) return {all, {}};
  Indexes by_size = all;
  std::stable_sort(by_size.begin(), by_size.end(), [&](uint32_t a, uint32_t b) {
    return lifetimes[a].rounded > lifetimes[b].rounded;
  });
  Indexes rank(all.size());
  for (uint32_t i = 0; i < by_size.size(); ++i) rank[by_size[i]] = i;
  const auto ranked = [&](size_t from, size_t to) {
    Indexes items;
    items.reserve(to - from);
    for (const uint32_t item : all) {
      if (from <= rank[item] && rank[item] < to) items.push_back(item);
    }
    return items;
  };
  size_t few = 0, many = all.size();  // few are within the budget, many are not
  while (many - few > 1 + all.size() / 64) {
    const size_t middle = few + (many - few) / 2;
    (PairsTogether(lifetimes, ranked(0, middle)) <= budget ? few : many) = middle;
  }
  return {ranked(0, few), ranked(few, all.size())};
}

}  // namespace

Packing BestPacking(absl::Span<const Lifetime> lifetimes, const PackingOptions& options) {
  Packing best;
  if (lifetimes.empty()) return best;
  const PeakLive live = PeakLiveOf(lifetimes);
  const auto keep = [&](std::string_view heuristic, uint64_t height, std::vector<uint64_t> offset) {
    if (best.offset.empty() || Bytes(height) < best.height) {
      best = {Bytes(height), std::move(offset), heuristic};
    }
    return best.height == live.rounded;
  };
  {
    std::vector<uint64_t> offset(lifetimes.size(), kUnplaced);
    Indexes all(lifetimes.size());
    std::iota(all.begin(), all.end(), 0);
    const uint64_t height = PlaceAsTheyCome(lifetimes, all, offset);
    if (keep("in order of arrival, best fit", height, std::move(offset))) return best;
  }

  const auto [chosen, rest] = LargestWithin(lifetimes, options.pair_budget);
  const auto size = [&](uint32_t i) { return lifetimes[i].rounded.value(); };
  const auto life = [&](uint32_t i) { return uint64_t{lifetimes[i].end - lifetimes[i].begin}; };
  const auto at_peak = [&](uint32_t i) {
    return lifetimes[i].begin <= live.rounded_moment && live.rounded_moment < lifetimes[i].end;
  };
  const struct {
    std::string_view name;
    std::function<bool(uint32_t, uint32_t)> before;
  } kOrders[] = {
      {"blocks live at the peak first, the longest-lived first",
       [&](uint32_t a, uint32_t b) {
         return std::tuple(at_peak(a), at_peak(a) ? life(a) : size(a)) >
                std::tuple(at_peak(b), at_peak(b) ? life(b) : size(b));
       }},
      {"blocks live at the peak first, the largest first",
       [&](uint32_t a, uint32_t b) {
         return std::tuple(at_peak(a), size(a), life(a)) > std::tuple(at_peak(b), size(b), life(b));
       }},
      {"largest first",
       [&](uint32_t a, uint32_t b) {
         return std::pair(size(a), life(a)) > std::pair(size(b), life(b));
       }},
  };
  // PlaceInOrder() has 32 bits for an offset.
  if (best.height.value() >= kMinBlockSize.value() << 32) return best;
  // The rest is the same on top of any packing.
  std::vector<uint64_t> above(rest.empty() ? 0 : lifetimes.size());
  const uint64_t rest_height = rest.empty() ? 0 : PlaceAsTheyCome(lifetimes, rest, above);
  for (const auto& order : kOrders) {
    if (rest_height >= best.height.value()) break;
    const uint64_t limit = best.height.value() - rest_height;
    std::vector<uint64_t> offset(lifetimes.size(), kUnplaced);
    const uint64_t height = PlaceInOrder(lifetimes, chosen, order.before, limit, offset);
    if (height >= limit) continue;
    for (const uint32_t item : rest) offset[item] = height + above[item];
    if (keep(order.name, height + rest_height, std::move(offset))) break;
  }
  return best;
}

}  // namespace memreplay

#include "sim/model/free_set.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <iterator>
#include <memory>
#include <random>
#include <set>
#include <tuple>
#include <vector>

namespace memreplay {
namespace {

struct InOrder {
  bool operator()(const Block* a, const Block* b) const {
    return std::tuple(a->size, a->order) < std::tuple(b->size, b->order);
  }
};
using Reference = std::set<Block*, InOrder>;

void ExpectEqual(const FreeSet& set, const Reference& reference) {
  std::vector<Block*> visited;
  set.Visit([&](Block* block) { visited.push_back(block); });
  ASSERT_EQ(visited, std::vector<Block*>(reference.begin(), reference.end()));
  ASSERT_EQ(set.First(), visited.empty() ? nullptr : visited.front());
  ASSERT_EQ(set.Last(), visited.empty() ? nullptr : visited.back());
  for (size_t i = 0; i < visited.size(); ++i) {
    ASSERT_EQ(set.Prev(visited[i]), i == 0 ? nullptr : visited[i - 1]);
    ASSERT_EQ(set.Next(visited[i]), i + 1 == visited.size() ? nullptr : visited[i + 1]);
  }
}

// Few sizes, so that buckets become trees, and sizes from one unit to 2^63 bytes.
TEST(FreeSetTest, IsAnOrderedSet) {
  std::mt19937_64 random(1);
  std::vector<std::unique_ptr<Block>> blocks;
  for (uint64_t i = 0; i < 600; ++i) {
    blocks.push_back(std::make_unique<Block>());
    blocks.back()->size =
        i % 2 == 0 ? Bytes(512 * (1 + random() % 3)) : Bytes(uint64_t{1} << (9 + random() % 55));
    blocks.back()->order = i % 7 * 1000 + i;
  }
  FreeSet set;
  Reference reference;
  ExpectEqual(set, reference);
  for (int step = 0; step < 6000; ++step) {
    Block* block = blocks[random() % blocks.size()].get();
    ASSERT_EQ(set.Contains(block), reference.count(block) > 0);
    if (reference.erase(block) > 0) {
      set.Erase(block);
    } else {
      set.Insert(block);
      reference.insert(block);
    }
    Block wanted;
    wanted.size = blocks[random() % blocks.size()]->size + Bytes(random() % 2);
    const auto at = reference.lower_bound(&wanted);
    ASSERT_EQ(set.LowerBound(wanted.size), at == reference.end() ? nullptr : *at);
    if (step % 50 == 0) ExpectEqual(set, reference);
  }
  while (!reference.empty()) {
    set.Erase(*reference.begin());
    reference.erase(reference.begin());
    if (reference.size() % 40 == 0) ExpectEqual(set, reference);
  }
}

}  // namespace
}  // namespace memreplay

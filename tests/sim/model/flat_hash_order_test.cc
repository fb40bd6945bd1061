
#include <gtest/gtest.h>

#include <vector>

#include "sim/model/stream_uses.h"

namespace memreplay {
namespace {

std::vector<uint32_t> Order(const FlatHashOrder<uint32_t>& table) {
  std::vector<uint32_t> values;
  for (size_t slot = table.Next(0); slot < table.slot_count(); slot = table.Next(slot + 1)) {
    values.push_back(table.value_at(slot));
  }
  return values;
}

std::vector<uint32_t> PoolStreams(uint32_t n) {
  FlatHashOrder<uint32_t> table;
  for (uint32_t i = 0; i < n; ++i) {
    table.TryEmplace(StreamKey(i + 1, StreamOrder::kPyTorchHash), i);
  }
  return Order(table);
}

// Orders that PyTorch's library shows: docs/fidelity.md, [hash-order].
TEST(FlatHashOrder, PoolStreamsInsertedInOrder) {
  EXPECT_EQ(PoolStreams(2), (std::vector<uint32_t>{1, 0}));
  EXPECT_EQ(PoolStreams(3), (std::vector<uint32_t>{2, 1, 0}));
  EXPECT_EQ(PoolStreams(5), (std::vector<uint32_t>{4, 3, 2, 1, 0}));
  EXPECT_EQ(PoolStreams(8), (std::vector<uint32_t>{4, 3, 7, 2, 6, 1, 5, 0}));
  EXPECT_EQ(PoolStreams(16),
            (std::vector<uint32_t>{4, 13, 8, 3, 12, 7, 2, 11, 15, 6, 1, 10, 5, 14, 0, 9}));
}

TEST(FlatHashOrder, DefaultStreamFirst) {
  FlatHashOrder<uint32_t> table;
  for (uint32_t stream = 0; stream < 5; ++stream) {
    table.TryEmplace(StreamKey(stream, StreamOrder::kPyTorchHash), stream);
  }
  EXPECT_EQ(Order(table), (std::vector<uint32_t>{0, 4, 3, 2, 1}));
}

TEST(FlatHashOrder, PoolIds) {
  FlatHashOrder<uint32_t> table;
  for (uint32_t id = 1; id <= 8; ++id) table.TryEmplace({id, 0}, id);
  EXPECT_EQ(Order(table), (std::vector<uint32_t>{5, 2, 7, 4, 1, 6, 3, 8}));
}

TEST(FlatHashOrder, EraseKeepsTheOthersInOrder) {
  FlatHashOrder<uint32_t> table;
  for (uint32_t id = 1; id <= 8; ++id) table.TryEmplace({id, 0}, id);
  EXPECT_TRUE(table.Erase({7, 0}));
  EXPECT_FALSE(table.Erase({7, 0}));
  EXPECT_EQ(Order(table), (std::vector<uint32_t>{5, 2, 4, 1, 6, 3, 8}));
  EXPECT_EQ(table.size(), 7u);
}

TEST(FlatHashOrder, KeysThatHashAlikeAreTwoKeys) {
  FlatHashOrder<uint32_t> table;
  table.TryEmplace({1, 0}, 10);
  table.TryEmplace({1, 1}, 11);
  EXPECT_EQ(*table.Find({1, 0}), 10u);
  EXPECT_EQ(*table.Find({1, 1}), 11u);
}

// Streams beyond PyTorch's pool have hashes of their own.
TEST(FlatHashOrder, StreamsBeyondThePoolTakeRoomInProportion) {
  FlatHashOrder<uint32_t> table;
  for (uint32_t stream = 0; stream < 2000; ++stream) {
    table.TryEmplace(StreamKey(stream, StreamOrder::kPyTorchHash), stream);
  }
  EXPECT_EQ(table.size(), 2000u);
  EXPECT_LT(table.slot_count(), 20000u);
}

// What a file makes up to collide takes time, not 2^n slots.
TEST(FlatHashOrder, ManyKeysThatHashAlike) {
  FlatHashOrder<uint32_t> table;
  for (uint32_t tag = 0; tag < 500; ++tag) table.TryEmplace({7, tag}, tag);
  EXPECT_LT(table.slot_count(), 100000u);
  for (uint32_t tag = 0; tag < 500; tag += 2) EXPECT_TRUE(table.Erase({7, tag}));
  for (uint32_t tag = 0; tag < 500; ++tag) {
    EXPECT_EQ(table.Contains({7, tag}), tag % 2 == 1) << tag;
    if (tag % 2 == 1) {
      EXPECT_EQ(*table.Find({7, tag}), tag);
    }
  }
}

}  // namespace
}  // namespace memreplay

#include <gtest/gtest.h>
#include <zlib.h>

#include "absl/strings/escaping.h"
#include "report/run/run_data.h"

namespace memreplay {
namespace {

std::string Inflate(const std::string& deflated, size_t size) {
  std::string bytes(size + 1, '\0');
  uLongf length = bytes.size();
  EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(bytes.data()), &length,
                       reinterpret_cast<const Bytef*>(deflated.data()), deflated.size()),
            Z_OK);
  bytes.resize(length);
  return bytes;
}

// Does what columns.js does.
std::vector<uint64_t> Unpack(const Column& column) {
  const std::string planes =
      Inflate(column.deflated, column.count * static_cast<size_t>(column.width));
  std::vector<uint64_t> values(column.count);
  uint64_t before = 0;
  for (size_t i = 0; i < column.count; ++i) {
    uint64_t value = 0;
    for (int plane = column.width - 1; plane >= 0; --plane) {
      const auto byte = planes[static_cast<size_t>(plane) * column.count + i];
      value = value << 8 | static_cast<unsigned char>(byte);
    }
    if (column.is_delta && i > 0) value = before + ((value >> 1) ^ (~(value & 1) + 1));
    before = value;
    values[i] = value * column.unit;
  }
  return values;
}

TEST(PackColumn, GivesBackWhatItTook) {
  const std::vector<std::vector<uint64_t>> examples = {
      {},
      {0},
      {0, 0, 0},
      {7},
      {512, 1024, 0, 512},
      {1, 255, 256, 65535, 65536},
      {5, 3, 900, 0, uint64_t{1} << 52},
      {~uint64_t{0}, 0, ~uint64_t{0}},
  };
  for (const std::vector<uint64_t>& values : examples) {
    for (const bool is_delta : {false, true}) {
      EXPECT_EQ(Unpack(PackColumn("x", values, is_delta)), values);
    }
  }
}

TEST(PackColumn, TakesNoMoreRoomThanTheValuesNeed) {
  EXPECT_EQ(PackColumn("x", {2 << 20, 20 << 20}, false).unit, uint64_t{2} << 20);
  EXPECT_EQ(PackColumn("x", {2 << 20, 20 << 20}, false).width, 1);
  EXPECT_EQ(PackColumn("x", {1, 256}, false).width, 2);
  EXPECT_EQ(PackColumn("x", {1000000, 1000001, 1000000}, true).width, 3);
  EXPECT_EQ(PackColumn("x", {0, 1, 2, 3}, true).width, 1);
}

TEST(Columns, StandOneAfterTheOther) {
  const std::vector<Column> columns = {PackColumn("a", {3, 5}, false), PackBytes("b", "hello")};
  std::string bytes;
  ASSERT_TRUE(absl::Base64Unescape(ColumnsBase64(columns), &bytes));
  EXPECT_EQ(bytes, columns[0].deflated + columns[1].deflated);
  EXPECT_EQ(Inflate(columns[1].deflated, 5), "hello");
  EXPECT_NE(ColumnsJson(columns).find("{\"name\":\"b\",\"count\":5,\"unit\":1,\"width\":1,"),
            std::string::npos);
}

}  // namespace
}  // namespace memreplay

#include "report/run/columns.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <memory>
#include <numeric>

#include "absl/strings/escaping.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// Level 6 takes a third longer to write and saves a twentieth. For columns of one or two bytes per
// value, level 3 takes half the time of level 4 and needs as few bytes.
constexpr int kLevel = 4;
constexpr int kLevelOfNarrow = 3;

std::string Deflate(std::string_view bytes, int level) {
  uLongf length = compressBound(bytes.size());
  const auto packed = std::unique_ptr<char[]>(new char[length]);
  const int status = compress2(reinterpret_cast<Bytef*>(packed.get()), &length,
                               reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), level);
  if (status != Z_OK) std::abort();  // there is room for any input
  return {packed.get(), length};
}

// Passes the values from `begin` on to `take`, in blocks whose constant length lets the compiler
// use vector instructions; the last values come one by one.
template <typename Take>
void ForBlocks(size_t begin, size_t end, Take take) {
  constexpr size_t kBlock = 64;
  for (; end - begin >= kBlock; begin += kBlock) {
    for (size_t i = begin; i < begin + kBlock; ++i) take(i);
  }
  for (; begin < end; ++begin) take(begin);
}

// Returns the greatest common divisor of all; 1 if they are 0.
template <typename Value>
uint64_t UnitOf(const std::vector<Value>& values) {
  const Value* const from = values.data();
  Value all = 0;
  ForBlocks(0, values.size(), [&](size_t i) { all |= from[i]; });
  if (all == 0) return 1;
  // Its power of two is that of all values or-ed together; the rest soon becomes 1 in most cases.
  const int twos = std::countr_zero(all);
  uint64_t rest = 0;
  for (const Value value : values) {
    if (rest == 1) break;
    rest = std::gcd(rest, uint64_t{value} >> twos);
  }
  return rest << twos;
}

template <typename Value>
void Divide(uint64_t unit, std::vector<Value>* values) {
  if (unit == 1) return;
  Value* const to = values->data();
  if (std::has_single_bit(unit)) {
    const int twos = std::countr_zero(unit);
    ForBlocks(0, values->size(), [&](size_t i) { to[i] = static_cast<Value>(to[i] >> twos); });
  } else {
    for (Value& value : *values) value = static_cast<Value>(value / unit);
  }
}

uint64_t Zigzag(uint64_t now, uint64_t before) {
  const auto difference = static_cast<int64_t>(now - before);
  return (static_cast<uint64_t>(difference) << 1) ^ static_cast<uint64_t>(difference >> 63);
}

// Stores the `count` values of `read` in planes. The first, which is not the difference from
// another, is `first`.
template <typename Read>
void PackPlanes(size_t count, uint64_t first, Read read, Column* column) {
  uint64_t all = first;
  ForBlocks(1, std::max<size_t>(count, 1), [&](size_t i) { all |= read(i); });
  column->width = std::max(1, (static_cast<int>(std::bit_width(all)) + 7) / 8);
  const size_t size = count * static_cast<size_t>(column->width);
  const auto planes = std::unique_ptr<char[]>(new char[size]);
  for (int byte = 0; byte < column->width && count > 0; ++byte) {
    char* const plane = planes.get() + count * static_cast<size_t>(byte);
    plane[0] = static_cast<char>(first >> (8 * byte) & 0xff);
    ForBlocks(1, count,
              [&](size_t i) { plane[i] = static_cast<char>(read(i) >> (8 * byte) & 0xff); });
  }
  column->deflated = Deflate({planes.get(), size}, column->width <= 2 ? kLevelOfNarrow : kLevel);
}

}  // namespace

template <typename Value>
Column PackColumn(std::string_view name, std::vector<Value> values, bool is_delta) {
  Column column;
  column.name = name;
  column.count = values.size();
  column.is_delta = is_delta;
  column.unit = UnitOf(values);
  Divide(column.unit, &values);
  const Value* const from = values.data();
  const uint64_t first = values.empty() ? 0 : values.front();
  if (is_delta) {
    PackPlanes(
        values.size(), first, [from](size_t i) { return Zigzag(from[i], from[i - 1]); }, &column);
  } else {
    PackPlanes(
        values.size(), first, [from](size_t i) { return uint64_t{from[i]}; }, &column);
  }
  return column;
}
template Column PackColumn(std::string_view, std::vector<uint8_t>, bool);
template Column PackColumn(std::string_view, std::vector<uint16_t>, bool);
template Column PackColumn(std::string_view, std::vector<uint32_t>, bool);
template Column PackColumn(std::string_view, std::vector<uint64_t>, bool);

Column PackBytes(std::string_view name, std::string_view bytes) {
  Column column;
  column.name = name;
  column.count = bytes.size();
  column.deflated = Deflate(bytes, kLevel);
  return column;
}

std::string ColumnsJson(const std::vector<Column>& columns) {
  std::string json = "[";
  for (const Column& column : columns) {
    StrAppend(&json, json.size() > 1 ? "," : "", "{\"name\":\"", column.name,
              "\",\"count\":", column.count, ",\"unit\":", column.unit, ",\"width\":", column.width,
              ",\"delta\":", column.is_delta ? "true" : "false",
              ",\"bytes\":", column.deflated.size(), "}");
  }
  return StrCat(json, "]");
}

std::string ColumnsBase64(const std::vector<Column>& columns) {
  std::string bytes;
  for (const Column& column : columns) bytes += column.deflated;
  std::string text;
  absl::Base64Escape(bytes, &text);
  return text;
}

}  // namespace memreplay

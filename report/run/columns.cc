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

// Returns the greatest common divisor of all; 1 if they are 0.
uint64_t UnitOf(const std::vector<uint64_t>& values) {
  uint64_t all = 0;
  for (const uint64_t value : values) all |= value;
  if (all == 0) return 1;
  // Its power of two is that of all values or-ed together; the rest soon becomes 1 in most cases.
  const int twos = std::countr_zero(all);
  uint64_t rest = 0;
  for (const uint64_t value : values) {
    if (rest == 1) break;
    rest = std::gcd(rest, value >> twos);
  }
  return rest << twos;
}

uint64_t Zigzag(uint64_t now, uint64_t before) {
  const auto difference = static_cast<int64_t>(now - before);
  return (static_cast<uint64_t>(difference) << 1) ^ static_cast<uint64_t>(difference >> 63);
}

}  // namespace

Column PackColumn(std::string_view name, std::vector<uint64_t> values, bool is_delta) {
  Column column;
  column.name = name;
  column.count = values.size();
  column.is_delta = is_delta;
  column.unit = UnitOf(values);
  if (std::has_single_bit(column.unit)) {
    const int twos = std::countr_zero(column.unit);
    for (uint64_t& value : values) value >>= twos;
  } else {
    for (uint64_t& value : values) value /= column.unit;
  }
  if (is_delta) {
    for (size_t i = values.size(); i-- > 1;) values[i] = Zigzag(values[i], values[i - 1]);
  }
  uint64_t all = 0;
  for (const uint64_t value : values) all |= value;
  column.width = std::max(1, (static_cast<int>(std::bit_width(all)) + 7) / 8);
  const size_t size = values.size() * static_cast<size_t>(column.width);
  const auto planes = std::unique_ptr<char[]>(new char[size]);
  for (int byte = 0; byte < column.width; ++byte) {
    char* const plane = planes.get() + values.size() * static_cast<size_t>(byte);
    for (size_t i = 0; i < values.size(); ++i) {
      plane[i] = static_cast<char>(values[i] >> (8 * byte) & 0xff);
    }
  }
  column.deflated = Deflate({planes.get(), size}, column.width <= 2 ? kLevelOfNarrow : kLevel);
  return column;
}

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

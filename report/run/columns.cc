#include "report/run/columns.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <numeric>

#include "absl/strings/escaping.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// Level 6 is a third slower to write and saves a twentieth.
constexpr int kLevel = 4;

std::string Deflate(std::string_view bytes) {
  uLongf length = compressBound(bytes.size());
  std::string packed(length, '\0');
  const int status = compress2(reinterpret_cast<Bytef*>(packed.data()), &length,
                               reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), kLevel);
  if (status != Z_OK) std::abort();  // the room is enough for anything
  packed.resize(length);
  return packed;
}

uint64_t Zigzag(uint64_t now, uint64_t before) {
  const auto difference = static_cast<int64_t>(now - before);
  return (static_cast<uint64_t>(difference) << 1) ^ static_cast<uint64_t>(difference >> 63);
}

}  // namespace

Column PackColumn(std::string_view name, const std::vector<uint64_t>& values, bool is_delta) {
  Column column;
  column.name = name;
  column.count = values.size();
  column.is_delta = is_delta;
  uint64_t unit = 0;
  for (const uint64_t value : values) {
    if (unit == 1) break;
    if (unit == 0 || value % unit != 0) unit = std::gcd(unit, value);
  }
  column.unit = std::max<uint64_t>(unit, 1);
  std::vector<uint64_t> numbers(values.size());
  uint64_t before = 0;
  uint64_t all = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t value = values[i] / column.unit;
    numbers[i] = is_delta && i > 0 ? Zigzag(value, before) : value;
    before = value;
    all |= numbers[i];
  }
  column.width = std::max(1, (static_cast<int>(std::bit_width(all)) + 7) / 8);
  std::string planes(values.size() * static_cast<size_t>(column.width), '\0');
  for (int byte = 0; byte < column.width; ++byte) {
    char* const plane = planes.data() + values.size() * static_cast<size_t>(byte);
    for (size_t i = 0; i < values.size(); ++i) {
      plane[i] = static_cast<char>(numbers[i] >> (8 * byte) & 0xff);
    }
  }
  column.deflated = Deflate(planes);
  return column;
}

Column PackBytes(std::string_view name, std::string_view bytes) {
  Column column;
  column.name = name;
  column.count = bytes.size();
  column.deflated = Deflate(bytes);
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

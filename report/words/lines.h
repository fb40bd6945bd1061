// Pieces that the text of several reports is made of.
#ifndef MEMREPLAY_REPORT_WORDS_LINES_H_
#define MEMREPLAY_REPORT_WORDS_LINES_H_

#include <google/protobuf/repeated_field.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memreplay {

// Appends "  label              text\n", the text in one column.
void Line(std::string* out, std::string_view label, std::string_view text);

// "default pool", "pool (0,1)".
std::string PoolName(const google::protobuf::RepeatedField<int64_t>& id);

// "stream 0", "stream 0x5a".
std::string StreamName(int64_t stream);

// One character per value, eighths of `highest` high; a value of 0 is a space.
std::string Sparkline(const std::vector<int64_t>& values, int64_t highest);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_WORDS_LINES_H_

// A program of the conformance harness: one flat JSON record per line (see ../README.md for the
// records).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace memreplay::conformance {

struct Record {
  int line = 0;      // in the file, from 1
  std::string kind;  // "k"
  std::string text;  // "v" or "n" when a string
  std::uint64_t id = 0;
  std::uint64_t bytes = 0;
  std::uint64_t stream = 0;
  std::uint64_t count = 0;  // "n" when a number
  double value = 0;         // "v" when a number
  std::pair<std::uint64_t, std::uint64_t> pool{0, 0};
  bool has_pool = false;
  bool use_on_oom = false;
  bool no_split = false;
};

struct Program {
  bool has_conf = false;
  std::string conf;
  std::uint64_t total = std::uint64_t{80} << 30;
  bool endless = false;  // never out of memory, says that it has 1 TiB
  bool has_fraction = false;
  double fraction = 1.0;
  bool explicit_completion = false;
  std::vector<Record> records;
};

// Throws std::runtime_error with the line's number when the text is no program.
Program parse_program(const std::string& text);

// Returns `text` between double quotes, with JSON's escapes.
std::string json_string(const std::string& text);

}  // namespace memreplay::conformance

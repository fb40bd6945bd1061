// What users read for the categories of allocations, and the columns of tables by category. This
// is the only list of these words; python/memreplay/_words.py has a copy that a test holds to it.
#pragma once

#include <google/protobuf/map.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memreplay {

// Returns "KV cache" for the category "cache" and the tag "kv_cache"; a tag of the
// user's own is its own name.
std::string_view CategoryNoun(std::string_view category);

// A column of a table by category. Small categories share one; it is called by those that it has.
struct CategoryColumn {
  std::string heading;         // of at most 8 characters
  std::string sentence;        // "parameters and buffers"; "" if there are no bytes
  std::vector<int64_t> bytes;  // a row each
};

// Returns the columns of rows with bytes by tag or category. `with_unknown` adds a last column for
// what is unknown, which written schedules do not have.
using BytesByTag = google::protobuf::Map<std::string, int64_t>;
std::vector<CategoryColumn> CategoryColumns(const std::vector<const BytesByTag*>& rows,
                                            bool with_unknown);

}  // namespace memreplay

// A fast path for the thousands of dicts in a pickle that have the same keys: each is read at once,
// as a row of values, for which the machine of pickle_reader would execute some fifty opcodes.
// Whatever is written differently is left to the machine, which implements every rule; nothing here
// is ever an error.
#ifndef MEMREPLAY_TRACE_BYTES_PICKLE_ROWS_H_
#define MEMREPLAY_TRACE_BYTES_PICKLE_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "trace/bytes/value.h"

namespace memreplay {

// Reads the dicts of a list that have the same keys, without the general machine.
class PickleRows {
 public:
  PickleRows(ValueHeap& heap, DictReducer& reducer) : heap_(heap), reducer_(reducer) {}

  // Reads the dict whose EMPTY_DICT is at `begin`, if it ends before `end` and is a row of the
  // reducer's (DictReducer::AddRow). Sets *row to what the reducer made of it, fills the memo and
  // returns the dict's length in bytes. Returns 0 if nothing was done. O(bytes of the dict).
  size_t Read(const char* begin, const char* end, Value* row);

 private:
  // The maximum number of keys in a record.
  static constexpr size_t kMaxKeys = 32;
  // The maximum size of cached lists, in bytes of the input.
  static constexpr size_t kMaxListBytes = size_t{16} << 20;

  // A key as a reference to the memo: the lower bytes of `bits`.
  struct Key {
    uint64_t bits;
    uint64_t mask;
    ptrdiff_t length;
  };

  size_t ReadRow(const char* begin, const char* end);
  bool LearnKeys(const char* begin, const char* end);
  bool ReadValue(const char** at, const char* end, Value* value);
  bool ReadList(const char** at, const char* end, Value* value);
  bool ReadPair(const char* begin, const char** at, Value* value);
  bool LookUp(std::string_view bytes, Value* value);
  void LearnLists();

  ValueHeap& heap_;
  DictReducer& reducer_;
  std::vector<Key> keys_;  // of the rows that the reducer accepts; empty: unknown
  std::vector<Value> values_;
  std::vector<Value> memoized_;  // what a row's lists became, in order

  // The reducer's results for lists, by the bytes of their references: equal references to the memo
  // are equal lists, as long as no slot of the memo gets another value.
  absl::flat_hash_map<std::string, Value> lists_;
  size_t list_bytes_ = 0;
  uint64_t memo_rewritten_ = 0;
  std::vector<std::pair<std::string, uint64_t>> new_lists_;  // bytes and slot of those being read
};

}  // namespace memreplay

#endif  // MEMREPLAY_TRACE_BYTES_PICKLE_ROWS_H_

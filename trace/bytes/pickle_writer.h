// Writes the opcodes of pickle protocol 4 for builtin containers and scalars.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace memreplay {

// Appends a pickle to a string that the caller may empty between calls. To write a container, call
// Begin, then Item and the element (for a dict, key and value) for each element, then End.
class PickleWriter {
 public:
  // The number of an object that can be referred to again.
  using Memo = uint32_t;

  explicit PickleWriter(std::string& out) : out_(out) {}

  void Start();  // writes the protocol
  void Stop();

  void Integer(int64_t value);
  void Unsigned(uint64_t value);
  void Float(double value);
  void Bool(bool value);
  // Writes a text, equal texts only once. Bytes that are not UTF-8 (surrogates are allowed, as with
  // Python's "surrogatepass") become U+FFFD and are counted.
  void Text(std::string_view text);
  void Pair(uint64_t first, uint64_t second);  // writes a tuple

  void BeginList();
  void BeginDict();
  // Precedes each element or key. Elements are written in batches of 1000, as CPython writes them.
  void Item();
  void End();

  // Allows the object just begun or written to be repeated with Get().
  Memo Remember();
  void Get(Memo memo);

  uint64_t replaced_texts() const { return replaced_texts_; }

 private:
  struct Open {
    bool is_dict;
    uint32_t items;  // in the open batch
  };
  void Little(uint64_t value, int bytes);
  void CloseBatch(const Open& open);

  std::string& out_;
  std::vector<Open> open_;
  Memo memos_ = 0;
  absl::flat_hash_map<std::string, Memo> texts_;
  uint64_t replaced_texts_ = 0;
};

}  // namespace memreplay

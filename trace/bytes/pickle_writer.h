// The opcodes of pickle protocol 4 that builtin containers and scalars need.
#ifndef MEMREPLAY_TRACE_BYTES_PICKLE_WRITER_H_
#define MEMREPLAY_TRACE_BYTES_PICKLE_WRITER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace memreplay {

// Appends to a string that the caller may empty between calls. Containers: call
// Begin, then for each element (key and value) Item and what it is, then End.
class PickleWriter {
 public:
  // Number of an object that can be referred to again.
  using Memo = uint32_t;

  explicit PickleWriter(std::string& out) : out_(out) {}

  void Start();  // the protocol
  void Stop();

  void Integer(int64_t value);
  void Unsigned(uint64_t value);
  void Float(double value);
  void Bool(bool value);
  // Equal texts are written once. Bytes that are not UTF-8 (surrogates are
  // allowed, as in Python's "surrogatepass") become U+FFFD and are counted.
  void Text(std::string_view text);
  void Pair(uint64_t first, uint64_t second);  // a tuple

  void BeginList();
  void BeginDict();
  // Before each element; before each key. Elements come in batches of 1000, as
  // CPython writes them.
  void Item();
  void End();

  // Makes the object just begun or written one that Get() can repeat.
  Memo Remember();
  void Get(Memo memo);

  uint64_t replaced_texts() const { return replaced_texts_; }

 private:
  struct Open {
    bool is_dict;
    uint32_t items;  // in the batch that is open
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

#endif  // MEMREPLAY_TRACE_BYTES_PICKLE_WRITER_H_

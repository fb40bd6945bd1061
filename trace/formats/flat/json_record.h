// One line that is a JSON object, with access to its members by type.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "trace/bytes/json_scanner.h"
#include "trace/value/trace.h"
#include "trace/value/units.h"

namespace memreplay {

// A line of flat JSON. Functions that return bool return false after an error, which is then in
// error(): "line L, byte B: expected X, found Y". Views are valid as long as the line.
class JsonRecord {
 public:
  // Scans the line with this number, which begins at byte `begin` of the file.
  bool Scan(std::string_view line, uint64_t begin, uint64_t number);

  absl::Status TakeError() { return std::move(error_); }

  // Reads the member "k", which every line has, and keeps it for kind().
  bool ReadKind();
  std::string_view kind() const { return kind_; }

  // Report an error at `offset` in the line, or at `place`, a view into it.
  bool FailAt(size_t offset, std::string_view expected, std::string_view found);
  bool Fail(std::string_view place, std::string_view expected, std::string_view found);
  bool Fail(const JsonMember& member, std::string_view expected);
  // Reports a missing member of this record.
  bool Missing(std::string_view key);
  static std::string Describe(const JsonValue& value);  // for "found"

  // Returns a member and marks it as used; null if absent.
  const JsonMember* Find(std::string_view key);
  size_t size() const { return members_.size(); }
  // Returns the byte of the file at which a value of this line begins.
  uint64_t PlaceOf(const JsonValue& value) const {
    return begin_ + static_cast<size_t>(value.raw.data() - line_.data());
  }

  std::string_view Text(const JsonValue& value);  // escapes resolved
  bool Unsigned(const JsonMember& member, uint64_t* value);
  bool Signed(const JsonMember& member, int64_t* value);
  bool Below(const JsonMember& member, uint64_t limit, uint64_t* value);
  bool String(const JsonMember& member, std::string_view* text);
  bool Bool(const JsonMember& member, bool* value);
  bool Double(const JsonMember& member, double* value);
  bool Array(const JsonMember& member, std::vector<JsonValue>* elements);
  bool Numbers(const JsonMember& member, std::vector<uint64_t>* numbers);
  // Reads [[a,b],...].
  bool Pairs(const JsonMember& member, std::vector<std::pair<uint64_t, uint64_t>>* pairs);
  bool Pool(const JsonMember& member, PoolId* pool);  // [a,b]

  // Reads a member if there is one; otherwise `value` keeps what it is.
  template <typename T>
  bool Optional(std::string_view key, T* value) {
    const JsonMember* member = Find(key);
    return member == nullptr || Value(*member, value);
  }

  // Reads a member that must be there.
  template <typename T>
  bool Required(std::string_view key, T* value) {
    const JsonMember* member = Find(key);
    return member == nullptr ? Missing(key) : Value(*member, value);
  }

  // Counts members that were not read; a duplicate key is an error.
  bool Finish(Diagnostics* diagnostics);

 private:
  bool Value(const JsonMember& member, int64_t* value) { return Signed(member, value); }
  bool Value(const JsonMember& member, std::string_view* value) { return String(member, value); }
  bool Value(const JsonMember& member, bool* value) { return Bool(member, value); }
  bool Value(const JsonMember& member, double* value) { return Double(member, value); }
  bool Value(const JsonMember& member, PoolId* value) { return Pool(member, value); }
  template <typename T>
  bool Value(const JsonMember& member, std::optional<T>* value) {
    return Value(member, &value->emplace());
  }
  // Reads a string that is kept, or Bytes and others of trace/value/units.h.
  template <typename T>
  bool Value(const JsonMember& member, T* value) {
    std::conditional_t<std::is_same_v<T, std::string>, std::string_view, uint64_t> read = {};
    if constexpr (std::is_same_v<T, std::string>) {
      if (!String(member, &read)) return false;
    } else {
      if (!Unsigned(member, &read)) return false;
    }
    *value = T(read);
    return true;
  }
  std::string_view Hold(std::string text);

  std::string_view line_;
  std::string_view kind_;
  uint64_t begin_ = 0;
  uint64_t number_ = 0;
  std::vector<JsonMember> members_;
  std::deque<std::string> held_;
  absl::Status error_;
};

}  // namespace memreplay

// Small Python-like values and their encodings, which make files for readers as CPython's pickle
// module writes them (protocols 2 to 5), as PyTorch's C++ writer does, and as json.dump does.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace memreplay {

struct Py {
  enum Kind { kNone, kBool, kInt, kUnsigned, kFloat, kString, kList, kTuple, kDict };
  Kind kind = kNone;
  int64_t integer = 0;
  double number = 0;
  std::string text;
  std::vector<Py> items;  // of dicts: key, value, key, value ...

  Py() = default;
  // This is implicit, so that {"size", 512} reads as in Python.
  // NOLINTBEGIN(google-explicit-constructor)
  Py(bool flag) : kind(kBool), integer(flag) {}
  Py(int value) : kind(kInt), integer(value) {}
  Py(int64_t value) : kind(kInt), integer(value) {}
  Py(uint64_t value) : kind(kUnsigned), integer(static_cast<int64_t>(value)) {}
  Py(double value) : kind(kFloat), number(value) {}
  Py(const char* value) : kind(kString), text(value) {}
  Py(std::string value) : kind(kString), text(std::move(value)) {}

  // NOLINTEND(google-explicit-constructor)

  static Py List(std::vector<Py> items) { return Container(kList, std::move(items)); }
  static Py Tuple(std::vector<Py> items) { return Container(kTuple, std::move(items)); }
  static Py Dict(const std::vector<std::pair<const char*, Py>>& pairs);

  // Returns the value under a key of a dict, to change it; makes it if there is none.
  Py& operator[](const char* key);

 private:
  static Py Container(Kind kind, std::vector<Py> items);
};

struct PickleStyle {
  int protocol = 4;      // 2 or 3: BINPUT instead of MEMOIZE, no FRAME
  size_t batch = 1000;   // elements per APPENDS and SETITEMS; 1: APPEND, SETITEM
  bool reverse = false;  // dict items in reverse order
};

// Equal strings are written once and then come from the memo.
std::string PythonPickle(const Py& value, const PickleStyle& style = {});
std::string CppPickle(const Py& value);
std::string Json(const Py& value);

}  // namespace memreplay

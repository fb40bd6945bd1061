#include "tests/trace/support/py_value.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>

namespace memreplay {
namespace {

std::string LittleEndian(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
  return out;
}

std::string BigEndianDouble(double number) {
  uint64_t bits;
  std::memcpy(&bits, &number, sizeof bits);
  std::string out = LittleEndian(bits, 8);
  std::reverse(out.begin(), out.end());
  return out;
}

class Encoder {
 public:
  Encoder(const PickleStyle& style, bool cpp) : style_(style), cpp_(cpp) {}

  std::string Encode(const Py& value) {
    Add(value);
    std::string header = "\x80" + std::string(1, static_cast<char>(style_.protocol));
    if (style_.protocol >= 4) header += "\x95" + LittleEndian(out_.size() + 1, 8);
    return header + out_ + ".";
  }

 private:
  void Memoize() {
    if (!cpp_ && style_.protocol >= 4) {
      out_ += '\x94';
    } else if (memo_size_ < 256) {
      out_ += "q" + LittleEndian(memo_size_, 1);
    } else {
      out_ += "r" + LittleEndian(memo_size_, 4);
    }
    ++memo_size_;
  }

  void AddString(const std::string& text) {
    if (auto known = memo_.find(text); known != memo_.end()) {
      out_ += known->second < 256 ? "h" + LittleEndian(known->second, 1)
                                  : "j" + LittleEndian(known->second, 4);
      return;
    }
    if (style_.protocol >= 4 && text.size() < 256) {
      out_ += "\x8c" + LittleEndian(text.size(), 1) + text;
    } else {
      out_ += "X" + LittleEndian(text.size(), 4) + text;
    }
    memo_[text] = memo_size_;
    Memoize();
  }

  void AddInteger(const Py& value) {
    const int64_t n = value.integer;
    const bool is_unsigned = value.kind == Py::kUnsigned && n < 0;
    if (!is_unsigned && n >= 0 && n < 256) {
      out_ += "K" + LittleEndian(static_cast<uint64_t>(n), 1);
    } else if (!is_unsigned && n >= 0 && n < 65536) {
      out_ += "M" + LittleEndian(static_cast<uint64_t>(n), 2);
    } else if (!is_unsigned && n >= std::numeric_limits<int32_t>::min() &&
               n <= std::numeric_limits<int32_t>::max()) {
      out_ += "J" + LittleEndian(static_cast<uint64_t>(n), 4);
    } else {
      int bytes = 8;
      if (!cpp_) {  // as few as hold it with its sign
        while (bytes > 1 && (n >> (8 * bytes - 9)) == (n < 0 ? -1 : 0)) --bytes;
        if (is_unsigned) bytes = 9;
      }
      std::string payload = LittleEndian(static_cast<uint64_t>(n), std::min(bytes, 8));
      if (bytes == 9) payload.push_back(0);
      out_ += "\x8a" + LittleEndian(payload.size(), 1) + payload;
    }
  }

  // `unit` values each: 1 for lists, 2 for dicts.
  void AddBatches(const std::vector<Py>& items, size_t unit, char one, char many) {
    const size_t batch = cpp_ ? std::max<size_t>(items.size(), unit) : style_.batch * unit;
    if (cpp_ && items.empty()) out_ += std::string("(") + many;
    for (size_t i = 0; i < items.size(); i += batch) {
      const size_t end = std::min(items.size(), i + batch);
      const bool single = !cpp_ && end - i == unit;
      if (!single) out_ += '(';
      for (size_t k = i; k < end; ++k) Add(items[k]);
      out_ += single ? one : many;
    }
  }

  void Add(const Py& value) {
    switch (value.kind) {
      case Py::kNone: out_ += 'N'; return;
      case Py::kBool: out_ += value.integer != 0 ? '\x88' : '\x89'; return;
      case Py::kInt:
      case Py::kUnsigned: return AddInteger(value);
      case Py::kFloat: out_ += "G" + BigEndianDouble(value.number); return;
      case Py::kString: return AddString(value.text);
      case Py::kList:
        out_ += ']';
        if (!cpp_) Memoize();
        return AddBatches(value.items, 1, 'a', 'e');
      case Py::kTuple:
        if (value.items.empty()) {
          out_ += ')';
          return;
        }
        if (value.items.size() > 3) out_ += '(';
        for (const Py& item : value.items) Add(item);
        out_ += value.items.size() > 3 ? 't' : static_cast<char>(0x84 + value.items.size());
        if (!cpp_) Memoize();
        return;
      case Py::kDict: {
        out_ += '}';
        if (!cpp_) Memoize();
        std::vector<Py> items = value.items;
        for (size_t i = 0; style_.reverse && i < items.size() / 2; i += 2) {
          std::swap(items[i], items[items.size() - 2 - i]);
          std::swap(items[i + 1], items[items.size() - 1 - i]);
        }
        return AddBatches(items, 2, 's', 'u');
      }
    }
  }

  const PickleStyle style_;
  const bool cpp_;
  std::string out_;
  std::map<std::string, uint64_t> memo_;
  uint64_t memo_size_ = 0;
};

void AddJson(const Py& value, std::string* out) {
  char number[40];
  switch (value.kind) {
    case Py::kNone: *out += "null"; return;
    case Py::kBool: *out += value.integer != 0 ? "true" : "false"; return;
    case Py::kInt: *out += std::to_string(value.integer); return;
    case Py::kUnsigned: *out += std::to_string(static_cast<uint64_t>(value.integer)); return;
    case Py::kFloat:
      std::snprintf(number, sizeof number, "%.17e", value.number);
      *out += number;
      return;
    case Py::kString:
      *out += '"';
      for (const char c : value.text) {
        if (c == '"' || c == '\\') *out += '\\';
        *out += c;
      }
      *out += '"';
      return;
    case Py::kList:
    case Py::kTuple:
    case Py::kDict: {
      const bool dict = value.kind == Py::kDict;
      *out += dict ? '{' : '[';
      for (size_t i = 0; i < value.items.size(); ++i) {
        if (i > 0) *out += dict && i % 2 == 1 ? ": " : ", ";
        AddJson(value.items[i], out);
      }
      *out += dict ? '}' : ']';
      return;
    }
  }
}

}  // namespace

Py Py::Container(Kind kind, std::vector<Py> items) {
  Py value;
  value.kind = kind;
  value.items = std::move(items);
  return value;
}

Py Py::Dict(const std::vector<std::pair<const char*, Py>>& pairs) {
  Py value = Container(kDict, {});
  for (const auto& [key, item] : pairs) {
    value.items.emplace_back(key);
    value.items.push_back(item);
  }
  return value;
}

Py& Py::operator[](const char* key) {
  for (size_t i = 0; i < items.size(); i += 2) {
    if (items[i].text == key) return items[i + 1];
  }
  items.emplace_back(key);
  return items.emplace_back();
}

std::string PythonPickle(const Py& value, const PickleStyle& style) {
  return Encoder(style, false).Encode(value);
}

std::string CppPickle(const Py& value) {
  return Encoder(PickleStyle{.protocol = 2}, true).Encode(value);
}

std::string Json(const Py& value) {
  std::string out;
  AddJson(value, &out);
  return out;
}

}  // namespace memreplay

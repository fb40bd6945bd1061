// Writes JSON.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace memreplay::card {

// JSON text that grows.
class Json {
 public:
  Json& open(char bracket) {
    separate();
    text_ += bracket;
    fresh_ = true;
    return *this;
  }
  Json& close(char bracket) {
    text_ += bracket;
    fresh_ = false;
    return *this;
  }
  Json& key(const char* name) {
    separate();
    quote(name);
    text_ += ": ";
    fresh_ = true;
    return *this;
  }
  Json& value(const std::string& text) { return value(text.c_str()); }
  Json& value(const char* text) {
    separate();
    quote(text);
    return *this;
  }
  Json& value(std::uint64_t number) {
    separate();
    char digits[24];
    std::snprintf(digits, sizeof digits, "%llu", static_cast<unsigned long long>(number));
    text_ += digits;
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  void separate() {
    if (!fresh_) text_ += ", ";
    fresh_ = false;
  }
  void quote(const char* text) {
    text_ += '"';
    for (; *text != 0; ++text) {
      const auto c = static_cast<unsigned char>(*text);
      if (c == '"' || c == '\\') text_ += '\\';
      if (c < 0x20) {
        char escaped[8];
        std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
        text_ += escaped;
      } else {
        text_ += *text;
      }
    }
    text_ += '"';
  }

  std::string text_;
  bool fresh_ = true;
};

}  // namespace memreplay::card

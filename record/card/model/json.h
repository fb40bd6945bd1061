// Writes JSON.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace memreplay::card {

// JSON text that grows.
class Json {
 public:
  Json& Open(char bracket) {
    Separate();
    text_ += bracket;
    fresh_ = true;
    return *this;
  }
  Json& Close(char bracket) {
    text_ += bracket;
    fresh_ = false;
    return *this;
  }
  Json& Key(const char* name) {
    Separate();
    Quote(name);
    text_ += ": ";
    fresh_ = true;
    return *this;
  }
  Json& Value(const std::string& text) { return Value(text.c_str()); }
  Json& Value(const char* text) {
    Separate();
    Quote(text);
    return *this;
  }
  Json& Value(uint64_t number) {
    Separate();
    char digits[24];
    std::snprintf(digits, sizeof digits, "%llu", static_cast<unsigned long long>(number));
    text_ += digits;
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  void Separate() {
    if (!fresh_) text_ += ", ";
    fresh_ = false;
  }
  void Quote(const char* text) {
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

// What the fuzzers' mutations have in common: bytes read as choices, and numbers to put in a place.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <string_view>

#include "trace/value/units.h"

namespace memreplay::fuzz {

// Returns what an environment variable says, or `usual`.
inline uint64_t NumberFrom(const char* variable, uint64_t usual) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? usual : std::strtoull(text, nullptr, 10);
}

// The choices that a byte string makes, from its front; they are zero once it is used up.
class Choices {
 public:
  explicit Choices(std::string_view bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  uint64_t Byte() {
    if (bytes_.empty()) return 0;
    const auto byte = static_cast<uint8_t>(bytes_[0]);
    bytes_.remove_prefix(1);
    return byte;
  }
  uint64_t Word() { return Byte() | Byte() << 8; }
  uint64_t Below(uint64_t n) { return (n <= 256 ? Byte() : Word()) % n; }
  // Returns the choices of the next `n` bytes, which are no longer among these.
  Choices Take(size_t n) {
    const Choices taken(bytes_.substr(0, n));
    bytes_.remove_prefix(std::min(n, bytes_.size()));
    return taken;
  }

 private:
  std::string_view bytes_;
};

inline constexpr uint64_t kEdges[] = {0,
                                      1,
                                      511,
                                      512,
                                      uint64_t{1} << 20,
                                      (uint64_t{1} << 20) + 1,
                                      uint64_t{2} << 20,
                                      uint64_t{20} << 20,
                                      uint64_t{1} << 31,
                                      uint64_t{1} << 32,
                                      uint64_t{1} << 40,
                                      uint64_t{1} << 41,
                                      uint64_t{1} << 47,
                                      uint64_t{1} << 48,
                                      (uint64_t{1} << 56) - 512,
                                      uint64_t{1} << 56,
                                      (uint64_t{1} << 60) - 512,
                                      uint64_t{1} << 60,
                                      uint64_t{1} << 62,
                                      (uint64_t{1} << 63) - 512,
                                      uint64_t{1} << 63,
                                      ~uint64_t{0} - 511,
                                      ~uint64_t{0},
                                      0x7f0000000000,
                                      0x7fffffffffff};

// Returns a number made of `value`: an edge of what 64 bits hold, scaled, nudged, or `other`.
inline uint64_t Changed(uint64_t value, uint64_t other, uint64_t how, uint64_t by) {
  constexpr uint64_t kSteps[] = {
      1, 512, 4096, uint64_t{1} << 20, uint64_t{2} << 20, uint64_t{32} << 20};
  switch (how % 6) {
    case 0: return kEdges[by % std::size(kEdges)];
    case 1: return value << (1 + by % 40);
    case 2: return value >> (1 + by % 20);
    case 3: return value + kSteps[by % std::size(kSteps)];
    case 4: return value - kSteps[by % std::size(kSteps)];
    default: return other;
  }
}

}  // namespace memreplay::fuzz

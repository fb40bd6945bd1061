// Random numbers of schedule programs: splitmix64 of a counter, so that other software in any
// language can draw the same numbers.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/types/span.h"

namespace memreplay::program {

// The sequence of splitmix64 for a seed.
class CounterRandom {
 public:
  explicit CounterRandom(uint64_t seed) : state_(seed) {}

  // Returns the next number; the nth call returns splitmix64's nth number for the seed.
  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // Returns the upper 53 bits as a fraction: 0 <= u < 1.
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  // Returns min <= n <= max, by the upper half of a 128-bit product; requires min <= max.
  int64_t Between(int64_t min, int64_t max);
  // Returns a normally distributed number by the cosine of Box-Muller, which takes two draws.
  double Normal();
  // Draws an index by weight; no weight may be negative, and their sum must be positive and finite.
  size_t Weighted(absl::Span<const double> weights);

 private:
  uint64_t state_;
};

// A distribution with known parameters, to draw a number from. The number of random numbers drawn
// does not depend on the result.
struct Draw {
  enum class Kind : uint8_t { kUniform, kLogUniform, kLogNormal, kGeometric };
  Kind kind = Kind::kUniform;
  int64_t min = 1;  // at least 1 for kLogUniform
  int64_t max = INT64_MAX;
  int64_t round = 1;  // at least 1
  double mu = 0;
  double sigma = 0;
  double mean = 1;  // at least 1
};
int64_t DrawFrom(const Draw& draw, CounterRandom& random);

// Rounds `value` up to a multiple of draw.round, then limits it.
int64_t RoundAndLimit(const Draw& draw, int64_t value);

}  // namespace memreplay::program

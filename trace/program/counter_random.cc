#include "trace/program/counter_random.h"

#include <algorithm>
#include <cmath>

namespace memreplay::program {
namespace {

// Returns the nearest integer, or the nearest one that fits.
int64_t ToInteger(double value) {
  if (!(value > -0x1p63)) return INT64_MIN;
  if (value >= 0x1p63) return INT64_MAX;
  return static_cast<int64_t>(std::floor(value));
}

}  // namespace

int64_t CounterRandom::Between(int64_t min, int64_t max) {
  const uint64_t width = static_cast<uint64_t>(max) - static_cast<uint64_t>(min) + 1;
  const uint64_t draw = Next();
  if (width == 0) return static_cast<int64_t>(draw);  // all of 64 bits
  __extension__ using Wide = unsigned __int128;
  const auto offset = static_cast<uint64_t>((static_cast<Wide>(draw) * width) >> 64);
  return static_cast<int64_t>(static_cast<uint64_t>(min) + offset);
}

double CounterRandom::Normal() {
  constexpr double kTwoPi = 6.283185307179586;
  const double radius = std::sqrt(-2.0 * std::log1p(-Unit()));
  return radius * std::cos(kTwoPi * Unit());
}

size_t CounterRandom::Weighted(absl::Span<const double> weights) {
  double sum = 0;
  for (const double weight : weights) sum += weight;
  double rest = Unit() * sum;
  size_t chosen = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] <= 0) continue;
    chosen = i;
    if (rest < weights[i]) break;
    rest -= weights[i];
  }
  return chosen;
}

int64_t RoundAndLimit(const Draw& draw, int64_t value) {
  const int64_t rest = value % draw.round;
  if (rest != 0) {
    value -= rest < 0 ? rest + draw.round : rest;  // down to a multiple; cannot overflow upwards
    if (__builtin_add_overflow(value, draw.round, &value)) value = INT64_MAX;
  }
  return std::min(std::max(value, draw.min), draw.max);
}

int64_t DrawFrom(const Draw& draw, CounterRandom& random) {
  int64_t value = 0;
  switch (draw.kind) {
    case Draw::Kind::kUniform: value = random.Between(draw.min, draw.max); break;
    case Draw::Kind::kLogUniform: {
      const double low = std::log(static_cast<double>(draw.min));
      const double high = std::log(static_cast<double>(draw.max));
      value = ToInteger(std::exp(low + random.Unit() * (high - low)));
      break;
    }
    case Draw::Kind::kLogNormal:
      value = ToInteger(std::exp(draw.mu + draw.sigma * random.Normal()) + 0.5);
      break;
    case Draw::Kind::kGeometric: {
      const double unit = random.Unit();
      const double p = 1 / draw.mean;
      value =
          p >= 1 ? 1 : 1 + std::min(ToInteger(std::log1p(-unit) / std::log1p(-p)), INT64_MAX - 1);
      break;
    }
  }
  return RoundAndLimit(draw, value);
}

}  // namespace memreplay::program

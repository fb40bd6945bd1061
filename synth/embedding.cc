// Embedding: selects rows of a weight by index, and computes the weight's gradient.
#include <algorithm>
#include <utility>

#include "synth/ops.h"

namespace memreplay::synth {
namespace {

// Returns the scratch memory of device-wide algorithms that sort and count indices: parts that each
// begin at a multiple of 256 bytes, plus the bytes to align the start.
int64_t Scratch(std::initializer_list<int64_t> parts) {
  constexpr int64_t kAlignment = 256;
  int64_t bytes = kAlignment - 1;
  for (const int64_t part : parts) bytes += RoundUpTo(part, kAlignment);
  return bytes;
}

// Returns the scratch memory to sort `n` pairs of 8 bytes, by 8 bits of the key in each pass: the
// counts of each pass, what blocks exchange in one pass, and a copy of the pairs if there is more
// than one pass.
int64_t SortScratch(const DeviceAlgorithms& device, int64_t n, int64_t largest) {
  constexpr int64_t kValues = 256;  // of 8 bits
  int64_t bits = 1;
  while (bits < 63 && largest >> bits != 0) ++bits;
  const int64_t passes = device.sorts_by_used_bits ? DividedUp(bits, 8) : 8;
  const int64_t copy = passes > 1 ? 8 * n : 0;
  return Scratch(
      {passes * kValues * 8, DividedUp(n, device.sort_tile) * kValues * 4, copy, copy, 32});
}

// Returns the memory that blocks pass on to their successors: 8 or 16 bytes for each, and for a
// warp before the first.
int64_t LookBack(int64_t n, int64_t tile, int64_t bytes) {
  return (DividedUp(n, tile) + 32) * bytes;
}

// Returns the scratch memory to find the starts of runs of equal values among `n`.
int64_t RunsScratch(const DeviceAlgorithms& device, int64_t n) {
  if (!device.wide_counts) return Scratch({LookBack(n, device.runs_tile, 8)});
  return Scratch({LookBack(n, device.runs_tile, 16), 1});
}

// Returns the scratch memory for the prefix sums of `n` values.
int64_t SumsScratch(const DeviceAlgorithms& device, int64_t n) {
  constexpr int64_t kTile = 896;
  if (!device.wide_counts) return Scratch({LookBack(n, kTile, 16)});
  return Scratch({LookBack(n, kTile, 16), 1});
}

// Creates the dense gradient of an embedding with V rows, of which n indices select some. Every
// size is what torch 2.6, 2.11 and 2.15 requested in `memreplay record`.
Tensor EmbeddingGradient(Session& s, const Sizes& weight_sizes, int64_t n) {
  constexpr int64_t kSortAbove = 3072;  // fewer indices go to a kernel without scratch
  const DeviceAlgorithms& device = s.platform().algorithms;
  const auto make_grad = [&] {
    return s.New("embedding grad", weight_sizes, DType::kFloat32, "temporary");  // 4 VC
  };
  if (n <= kSortAbove) return make_grad();
  const int64_t segments = std::min(n, weight_sizes[0]);  // one for each row that occurs
  const int64_t partial_segments = n / 10 + segments;     // of at most 10 indices
  const auto sorted = s.NewScratch("embedding sorted indices", 8 * n);
  const auto origin = s.NewScratch("embedding original positions", 8 * n);
  {
    const auto positions = s.NewScratch("embedding positions", 8 * n);
    s.NewScratch("embedding sort", SortScratch(device, n, weight_sizes[0]));
  }
  Tensor grad = make_grad();
  const auto offsets = s.NewScratch("embedding segment offsets", 8 * n);
  const auto count = s.NewScratch("embedding segment count", 8);
  {
    const auto rows = s.NewScratch("embedding rows that occur", 8 * n);
    s.NewScratch("embedding segments", RunsScratch(device, n));
  }
  const auto partials = s.NewScratch("embedding partials per segment", 8 * segments);
  const auto partials_offset = s.NewScratch("embedding partials offsets", 8 * segments);
  s.NewScratch("embedding partials sum", SumsScratch(device, segments));
  const auto partials_count = s.NewScratch("embedding partial count", 8);
  const auto partial_offset = s.NewScratch("embedding partial offsets", 8 * partial_segments);
  const bool few = device.sums_few_rows_apart && segments < 4 * device.multiprocessors &&
                   partial_segments > 4 * segments;
  const auto sums =
      few ? s.NewScratch("embedding segment of each part", 8 * partial_segments)
          : s.NewScratch("embedding partial sums", 4 * partial_segments * weight_sizes[1]);
  return grad;
}

}  // namespace

Tensor Embedding(Session& s, const Tensor& weight, const Tensor& indices) {
  Sizes sizes = indices.sizes();
  sizes.push_back(weight.size(1));
  Tensor y = s.New("embedding", std::move(sizes), weight.dtype());
  s.Record(
      {weight}, {y}, {indices},
      [sizes = weight.sizes()](Session& session, const Tensors&, const Tensors& saved) -> Tensors {
        return {EmbeddingGradient(session, sizes, saved[0].element_count())};
      });
  return y;
}

}  // namespace memreplay::synth

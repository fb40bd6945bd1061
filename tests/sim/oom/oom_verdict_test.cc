// Public out-of-memory reports with complete numbers: would perfect packing
// have served the request?
#include "sim/oom/oom_verdict.h"

#include <gtest/gtest.h>

#include <cmath>

namespace memreplay {
namespace {

Bytes Gib(double n) { return Bytes(static_cast<uint64_t>(std::llround(n * (1 << 30)))); }
Bytes Mib(double n) { return Bytes(static_cast<uint64_t>(std::llround(n * (1 << 20)))); }

struct Case {
  const char* source;
  OomNumbers numbers;
  OomVerdict verdict;
};

TEST(JudgeNumbers, PublicReports) {
  const auto numbers = [](Bytes tried, Bytes capacity, Bytes free, Bytes allocated,
                          Bytes unallocated) {
    return OomNumbers{tried, free, allocated, unallocated, std::nullopt, capacity};
  };
  const Case kCases[] = {
      {"vllm#39054", numbers(Gib(2), Gib(178.35), Gib(1.68), Gib(159.21), Gib(16.57)),
       OomVerdict::kFragmentation},
      {"TensorRT-LLM#10580", numbers(Gib(3.99), Gib(79.11), Gib(3.16), Gib(67.16), Gib(6.90)),
       OomVerdict::kFragmentation},
      // The message blames fragmentation; 12.73 + 9.35 = 22.08 < 22.78.
      {"CADS#4", numbers(Gib(22.78), Gib(31.47), Gib(12.73), Gib(9.08), Gib(9.35)),
       OomVerdict::kTrueShortage},
      {"Mask2DiT#4", numbers(Gib(35.60), Gib(79.33), Gib(26.16), Gib(11.97), Gib(40.69)),
       OomVerdict::kFragmentation},
      {"cobra#24", numbers(Mib(158), Gib(23.69), Mib(115.69), Gib(22.14), Mib(910.35)),
       OomVerdict::kFragmentation},
      {"vllm#7721", numbers(Gib(16), Gib(44.53), Mib(187.94), Gib(43.67), Mib(335.07)),
       OomVerdict::kTrueShortage},
      {"Qwen2.5-Omni#240", numbers(Gib(124.68), Gib(95.22), Gib(51.23), Gib(25.50), Gib(3.14)),
       OomVerdict::kTrueShortage},
  };
  for (const Case& c : kCases) {
    EXPECT_EQ(JudgeNumbers(c.numbers), c.verdict) << c.source;
  }
}

TEST(JudgeNumbers, ExactlyEnoughIsEnough) {
  OomNumbers numbers;
  numbers.tried = MiB(10);
  numbers.device_free = MiB(4);
  numbers.reserved_unallocated = MiB(6);
  EXPECT_EQ(JudgeNumbers(numbers), OomVerdict::kFragmentation);
  numbers.tried = MiB(10) + Bytes(1);
  EXPECT_EQ(JudgeNumbers(numbers), OomVerdict::kTrueShortage);
}

TEST(Obtainable, ALimitCountsWhatIsReserved) {
  OomNumbers numbers;
  numbers.device_free = MiB(100);
  numbers.allocated = MiB(30);
  numbers.reserved_unallocated = MiB(10);
  numbers.limit = MiB(50);
  EXPECT_EQ(Obtainable(numbers), MiB(20));  // 10 up to the limit, 10 in hand
  numbers.limit = MiB(20);
  EXPECT_EQ(Obtainable(numbers), MiB(10));  // beyond the limit already
}

}  // namespace
}  // namespace memreplay

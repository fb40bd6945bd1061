// Tests the rules by which tensors live and die, on graphs small enough to check by hand.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "synth/ops.h"
#include "synth/session.h"
#include "tests/trace/support/program_digest.h"

namespace memreplay::synth {
namespace {

TEST(ViewStrides, AreNothingWhereElementsWouldHaveToMove) {
  EXPECT_EQ(ViewStrides({4, 6}, {6, 1}, {24}), Sizes({1}));
  EXPECT_EQ(ViewStrides({4, 6}, {6, 1}, {2, 2, 3, 2}), Sizes({12, 6, 2, 1}));
  EXPECT_EQ(ViewStrides({4, 6}, {6, 1}, {3, 8}), Sizes({8, 1}));
  EXPECT_EQ(ViewStrides({6, 4}, {1, 6}, {24}), std::nullopt);           // transposed
  EXPECT_EQ(ViewStrides({6, 4}, {1, 6}, {2, 3, 4}), Sizes({3, 1, 6}));  // splits stay views
  EXPECT_EQ(ViewStrides({4, 2}, {6, 1}, {8}), std::nullopt);            // a slice of rows of 6
  EXPECT_EQ(ViewStrides({4, 2}, {6, 1}, {4, 1, 2}), Sizes({6, 2, 1}));
  EXPECT_EQ(ViewStrides({1, 5, 1}, {99, 1, 7}, {5}), Sizes({1}));  // ones have any stride
  EXPECT_EQ(ViewStrides({}, {}, {1, 1}), Sizes({1, 1}));
  // Heads: [B, T, C] as [B, H, T, D] and its transpose, folded to [B H, D, T].
  EXPECT_EQ(ViewStrides({2, 3, 8, 4}, {96, 4, 12, 1}, {6, 8, 4}), std::nullopt);
}

Tensor NewParameter(Session& s, Sizes sizes) {
  Tensor tensor = s.New("p", std::move(sizes), DType::kFloat32, "parameter");
  tensor.MakeParameter();
  return tensor;
}

std::vector<std::string> Lines(Session& s) { return Instants(s.writer().Finish("")); }

// These are the requests of torch 2.6 when it sums the rows of a tensor of bfloat16 under memreplay
// record.
TEST(Session, SumsOfRowsTakeTheScratchThatWasRecorded) {
  const int64_t rtx_4090 = int64_t{128} * 1536, t4 = int64_t{40} * 1024;
  struct Seen {
    int64_t threads, rows, columns;
    std::vector<std::string> lines;
  };
  const auto sums = [](int64_t bytes, int64_t semaphores) {
    return std::vector<std::string>{"A " + std::to_string(bytes),
                                    "A " + std::to_string(semaphores)};
  };
  for (const Seen& seen : {Seen{rtx_4090, 512, 384, {}},
                           {rtx_4090, 1024, 64, {}},
                           {rtx_4090, 2048, 64, sums(262144, 4)},
                           {rtx_4090, 3000, 384, sums(9240576, 12)},
                           {rtx_4090, 16384, 20, sums(40960, 8)},
                           {rtx_4090, 16384, 1152, sums(100859904, 36)},
                           {rtx_4090, 16384, 1154, sums(12112384, 76)},
                           {rtx_4090, 65536, 1601, sums(3278848, 204)},
                           {t4, 16384, 384, sums(21037056, 12)},
                           {t4, 65536, 4096, sums(134217728, 128)}}) {
    Session s({.resident_threads = seen.threads});
    NewParameter(s, {1000});
    s.UseRowSum(seen.rows, seen.columns);
    std::vector<std::string> found;
    for (const std::string& line : Lines(s)) {
      if (line[0] == 'A' && line != "A 4000") found.push_back(line);
    }
    EXPECT_EQ(found, seen.lines) << seen.rows << " x " << seen.columns;
  }
}

TEST(Autograd, ASavedTensorLivesUntilItsBackwardHasRun) {
  Session s({.cublas_workspace = Bytes(0)});
  Tensor p = NewParameter(s, {256});  // 0
  {
    Tensor y = Gelu(s, p);  // 1, saves 0
    Tensor z = Gelu(s, y);  // 2, saves 1
    y = Tensor();           // kept by the graph
    RunBackward(s, z);      // 3 ones; 4 = dy, frees 1; 5 = dp, frees 4; at its end 3
  }                         // 2
  s.writer().Phase("end");
  EXPECT_EQ(Lines(s), (std::vector<std::string>{"A 1024", "A 1024", "A 1024", "A 1024", "A 1024",
                                                "F 1", "A 1024", "F 2 3 4", "P end"}));
  EXPECT_TRUE(p.grad().defined());
}

TEST(Autograd, WithoutGradNothingIsKept) {
  Session s({.cublas_workspace = Bytes(0)});
  const Tensor p = NewParameter(s, {256});
  const GradMode no_grad(s, false);
  Tensor y = Gelu(s, Gelu(s, p));
  EXPECT_FALSE(y.requires_grad());
  EXPECT_EQ(Lines(s), (std::vector<std::string>{"A 1024", "A 1024", "A 1024", "F 1"}));
}

TEST(Autograd, ASecondGradientIsAddedInPlace) {
  Session s({.cublas_workspace = Bytes(0)});
  Tensor p = NewParameter(s, {256});  // 0
  for (int step = 0; step < 2; ++step) {
    Tensor a = Gelu(s, p);            // 1
    Tensor b = Silu(s, p);            // 2
    const Tensor sum = Add(s, a, b);  // 3, needs neither afterwards
    a = b = Tensor();
    RunBackward(s, sum);  // 4 ones, for both branches
  }
  // Silu is younger, so its gradient 5 comes first and 6 is added to it; in the
  // second step the parameter has a gradient, to which all is added.
  EXPECT_EQ(Lines(s), (std::vector<std::string>{"A 1024", "A 1024", "A 1024", "A 1024", "F 1 2",
                                                "A 1024", "A 1024", "A 1024", "F 3 4 6",  //
                                                "A 1024", "A 1024", "A 1024", "F 7 8", "A 1024",
                                                "A 1024", "A 1024", "F 9 10 11 12"}));
}

TEST(Autograd, GradientsTakeTheTypeAndSizeOfTheValue) {
  Session s({.cublas_workspace = Bytes(0)});
  const Tensor wide = NewParameter(s, {4, 256});       // 0
  const Tensor row = NewParameter(s, {256});           // 1
  const Tensor half = Cast(s, wide, DType::kFloat16);  // 2
  const Tensor sum = Add(s, half, row);                // 3, fp32
  RunBackward(s, sum);  // 4 ones; 5 cast for half, 6 summed for row; 7 cast back for wide
  s.writer().Phase("end");
  EXPECT_EQ(Lines(s), (std::vector<std::string>{"A 4096", "A 1024", "A 2048", "A 4096", "A 4096",
                                                "A 2048", "A 1024", "A 4096", "F 4 5", "P end"}));
}

TEST(Autograd, AutocastCastsAWeightOnceAndForgetsItAtTheEnd) {
  Session s({.cublas_workspace = Bytes(0)});
  const Tensor weight = NewParameter(s, {8, 8});  // 0
  const GradMode no_grad(s, false);
  const Tensor x = s.New("x", {8, 8}, DType::kFloat16);  // 1
  {
    const Autocast autocast(s, DType::kFloat16);
    Linear(s, x, weight, Tensor());  // 2 the cast, 3 the product
    Linear(s, x, weight, Tensor());  // 4 the product
  }
  s.writer().Phase("end");
  EXPECT_EQ(Lines(s), (std::vector<std::string>{"A 256", "A 128", "A 128", "A 128", "F 3", "A 128",
                                                "F 2 4", "P end"}));
}

TEST(Autograd, ALongChainIsTornDownWithoutRecursion) {
  Session s({.cublas_workspace = Bytes(0)});
  Tensor x = NewParameter(s, {1000});
  for (int i = 0; i < 50000; ++i) x = Scale(s, std::move(x), "scale");
  RunBackward(s, x);
}

TEST(Checkpoint, KeepsOnlyTheInputAndRunsTheBlockAgain) {
  Session s({.cublas_workspace = Bytes(0)});
  Tensor p = NewParameter(s, {256});  // 0
  Tensor x = Scale(s, p, "scale");    // 1
  Tensor y = Checkpoint(
      s, [&s](const Tensor& in) { return Gelu(s, Gelu(s, in)); }, x);  // 2 3, frees 2
  RunBackward(s, y);  // 4 ones; again 5 6; 7 = d5, frees 5; 8 = dx, frees 7 and 6; at its end 4
  s.writer().Phase("end");
  const std::vector<std::string> lines = Lines(s);
  EXPECT_EQ(lines, (std::vector<std::string>{"A 1024", "A 1024", "A 1024", "A 1024", "F 2",
                                             "A 1024", "A 1024", "A 1024", "A 1024", "F 5",
                                             "A 1024", "F 6 7", "A 1024", "F 4 8", "P end"}));
}

}  // namespace
}  // namespace memreplay::synth

#include "record/card/hooks/tensor_objects.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace memreplay::card {
namespace {

constexpr size_t kSize = 208;

class TensorObjects : public ::testing::Test {
 protected:
  void SetUp() override { SetTensorObjectsAside(); }  // once in the process
};

TEST_F(TensorObjects, AreOfASizeAndComeBackFirst) {
  EXPECT_EQ(TakeTensorObject(64), nullptr);
  EXPECT_EQ(TakeTensorObject(4096), nullptr);
  void* one = TakeTensorObject(kSize);
  ASSERT_NE(one, nullptr);
  std::memset(one, 1, kSize);
  EXPECT_TRUE(GiveTensorObjectBack(one));
  EXPECT_EQ(TakeTensorObject(kSize), one);
  EXPECT_TRUE(GiveTensorObjectBack(one));
  EXPECT_FALSE(GiveTensorObjectBack(nullptr));
  void* other = std::malloc(kSize);
  EXPECT_FALSE(GiveTensorObjectBack(other));
  std::free(other);
}

TEST_F(TensorObjects, MayBeFreedByWhoKnowsNothingOfThem) {
  std::vector<void*> taken;
  for (int i = 0; i < 100; ++i) taken.push_back(TakeTensorObject(kSize));
  for (void* memory : taken) std::free(memory);
  // malloc hands the same memory out, in other sizes too, and these are never taken for objects.
  std::set<void*> small;
  for (int i = 0; i < 2000; ++i) small.insert(std::malloc(40));
  for (void* memory : small) EXPECT_FALSE(GiveTensorObjectBack(memory));
  for (void* memory : small) std::free(memory);
  void* one = TakeTensorObject(kSize);
  ASSERT_NE(one, nullptr);
  EXPECT_TRUE(GiveTensorObjectBack(one));
}

TEST_F(TensorObjects, AreGivenToOneThreadEach) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 20000; ++i) {
        auto* mine = static_cast<unsigned char*>(TakeTensorObject(kSize));
        if (mine == nullptr) continue;  // another thread had hold of them for long
        std::memset(mine, t, kSize);
        for (size_t k = 0; k < kSize; ++k) ASSERT_EQ(mine[k], t);
        if (!GiveTensorObjectBack(mine)) std::free(mine);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(TensorObjects, AreThereInAForkedChild) {
  const pid_t child = fork();
  if (child == 0) {
    void* one = TakeTensorObject(kSize);
    _exit(one != nullptr && GiveTensorObjectBack(one) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace memreplay::card

// Calls every entry point with null pointers, and memory functions with a size of 0.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "record/card/device/device.h"
#include "record/card/device/entry.h"

namespace memreplay::card {
namespace {

class NullTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("MEMREPLAY_CARD", "rtx-4090", 1);
    TheDevice();
  }
};

constexpr size_t kMaxArguments = 24;

template <size_t... I>
void Call(void* function, const std::array<uint64_t, kMaxArguments>& arguments,
          std::index_sequence<I...> /*indices*/) {
  using Function = uint64_t(decltype(static_cast<uint64_t>(arguments[I]))...);
  reinterpret_cast<Function*>(function)(arguments[I]...);
}

// Returns the signal that ends a process that calls this entry point with null pointers and
// `number` in place of everything else; 0: none does.
int SignalOf(const Entry& entry, uint64_t number) {
  const pid_t pid = fork();
  if (pid == 0) {
    signal(SIGSEGV, SIG_DFL);
    alarm(20);
    std::array<uint64_t, kMaxArguments> arguments{};
    for (size_t i = 0; i < kMaxArguments; ++i) {
      arguments[i] = (entry.pointers >> i & 1) != 0 ? 0 : number;
    }
    Call(entry.function, arguments, std::make_index_sequence<kMaxArguments>());
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST_F(NullTest, EveryEntryPointSurvivesNullPointers) {
  int tried = 0;
  ForEachEntry([&](const Entry& entry) {
    if (entry.pointers == 0) return;
    ++tried;
    for (const uint64_t number : {0, 1, 100}) {
      EXPECT_EQ(SignalOf(entry, number), 0) << entry.name << " with " << number;
    }
  });
  EXPECT_GT(tried, 300);
}

template <typename... A>
int Answer(const char* name, A... arguments) {
  void* function = FindEntry(name);
  EXPECT_NE(function, nullptr) << name;
  return reinterpret_cast<int (*)(A...)>(function)(arguments...);
}

TEST_F(NullTest, EachLibraryHasItsOwnError) {
  void* const null = nullptr;
  const size_t size = 100;
  EXPECT_EQ(Answer("cudaMalloc", null, size), 1);
  EXPECT_EQ(Answer("cudaGetLastError"), 1);
  EXPECT_EQ(Answer("cudaGetLastError"), 0);
  EXPECT_EQ(Answer("cuMemAlloc_v2", null, size), 1);
  EXPECT_EQ(Answer("cudaGetLastError"), 0) << "is of the runtime";
  EXPECT_EQ(Answer("cudaMallocAsync", null, size, null), 1);
  EXPECT_EQ(Answer("cudaMallocHost", null, size), 1);
  EXPECT_EQ(Answer("cudaGetDevice", null), 1);
  EXPECT_EQ(Answer("cudaGetDeviceProperties", null, 0), 1);
  EXPECT_EQ(Answer("cudaEventCreate", null), 1);
  EXPECT_EQ(Answer("cudaEventRecord", null, null), 400);
  EXPECT_EQ(Answer("cudaHostRegister", null, size, 0U), 1);
  EXPECT_EQ(Answer("cuModuleLoadData", null, null), 1);
  EXPECT_EQ(Answer("cublasCreate_v2", null), 7);
  EXPECT_EQ(Answer("cublasSetStream_v2", null, null), 1) << "no handle";
  EXPECT_EQ(Answer("cublasLtCreate", null), 7);
  EXPECT_EQ(Answer("cudnnCreate", null), 2000);
  EXPECT_EQ(Answer("cusolverDnCreate", null), 3);
  EXPECT_EQ(Answer("cusparseCreate", null), 3);
  EXPECT_EQ(Answer("cufftCreate", null), 4);
  EXPECT_EQ(Answer("nvrtcVersion", null, null), 3);
  EXPECT_EQ(Answer("ncclGetUniqueId", null), 4);
  EXPECT_EQ(Answer("ncclCommInitAll", null, 1, null), 4);
  EXPECT_EQ(Answer("nvmlDeviceGetCount_v2", null), 2);
}

TEST_F(NullTest, OptionalPointersMayBeNull) {
  void* const null = nullptr;
  int status = 7;
  EXPECT_EQ(Answer("cudaStreamGetCaptureInfo_v2", null, &status, null, null, null, null), 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(Answer("cudaDeviceGetStreamPriorityRange", null, null), 0);
  EXPECT_EQ(Answer("cuCtxPopCurrent_v2", null), 0);
  EXPECT_EQ(Answer("cudaFree", null), 0);
  EXPECT_EQ(Answer("cudaFreeHost", null), 0);
  EXPECT_EQ(Answer("ncclCommDestroy", null), 0);
  EXPECT_EQ(Answer("cudnnDestroyTensorDescriptor", null), 0);
}

TEST_F(NullTest, CopiesOfNothingAreDone) {
  void* const null = nullptr;
  char host[4] = {};
  for (const size_t size : {0, 4}) {
    const int expected = size == 0 ? 0 : 1;
    EXPECT_EQ(Answer("cudaMemcpy", null, host, size, 4), expected);
    EXPECT_EQ(Answer("cudaMemcpyAsync", host, null, size, 4, null), expected);
    EXPECT_EQ(Answer("cudaMemcpy2D", host, size, null, size, size, size, 4), expected);
    EXPECT_EQ(Answer("cudaMemset", null, 1, size), expected);
    EXPECT_EQ(Answer("cuMemcpyHtoD_v2", null, host, size), expected);
    EXPECT_EQ(Answer("cuMemsetD32Async", null, 5U, size, null), expected);
  }
}

TEST_F(NullTest, MemoryOfNoSizeHasNoAddress) {
  void* const null = nullptr;
  int something = 0;
  for (const char* name : {"cudaMalloc", "cudaMallocHost", "cudaHostAlloc", "cudaMallocAsync"}) {
    void* address = &something;
    EXPECT_EQ(Answer(name, &address, size_t{0}, null), 0) << name;
    EXPECT_EQ(address, nullptr) << name;
  }
  for (const char* name :
       {"cuMemAlloc_v2", "cudaMallocManaged", "cuMemCreate", "cuMemAddressReserve"}) {
    void* address = &something;
    EXPECT_EQ(Answer(name, &address, size_t{0}, null, null, null), 1) << name;
  }
}

}  // namespace
}  // namespace memreplay::card

// Tests the card as a script sees it: through stub libraries, as torch does.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "tests/record/card/stub_library.h"

namespace memreplay::card {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

class CardTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("MEMREPLAY_CARD", "rtx-4090", 1);
    setenv("MEMREPLAY_CARD_COUNT", "2", 1);
    setenv("MEMREPLAY_CARD_HOST_MEMORY", "67108864", 1);
    core_ = LoadCore();
    const char* const kNames[] = {"cudaMalloc",
                                  "cudaFree",
                                  "cuMemAlloc_v2",
                                  "cuMemFree_v2",
                                  "cudaMemGetInfo",
                                  "cudaMemcpy",
                                  "cudaMemset",
                                  "cudaSetDevice",
                                  "cudaGetDeviceCount",
                                  "cudaEventCreate",
                                  "cudaEventRecord",
                                  "cudaEventQuery",
                                  "cudaEventSynchronize",
                                  "cudaEventElapsedTime",
                                  "cudaStreamCreate",
                                  "cudaGetLastError",
                                  "cudaStreamBeginCapture",
                                  "cudaStreamEndCapture",
                                  "cudaStreamIsCapturing",
                                  "cudaStreamSynchronize",
                                  "cudaGetDeviceProperties",
                                  "cudaMemcpyAsync",
                                  "cudaHostAlloc",
                                  "cudaFreeHost",
                                  "cudaHostRegister",
                                  "cudaHostUnregister"};
    StubLibrary library{"libcudart.so.13", "libmemreplay_card.so", {13000, 0, 0, 0}, {}};
    for (const char* name : kNames) library.symbols.push_back({name, "libcudart.so.13"});
    runtime_ = LoadStub(library);
    library = {"libcuda.so.1", "libmemreplay_card.so", {13000, 0, 0, 0}, {}};
    for (const char* name :
         {"cuMemCreate", "cuMemRelease", "cuMemAddressReserve", "cuMemMap", "cuMemAllocAsync",
          "cuMemFreeAsync", "cuMemPoolCreate", "cuMemPoolDestroy", "cuMemPoolSetAttribute",
          "cuMemPoolGetAttribute", "cuMemAllocFromPoolAsync", "cuDeviceGetMemPool",
          "cuDeviceSetMemPool", "cuDeviceGetDefaultMemPool", "cuGetProcAddress_v2",
          "cuGetExportTable", "cuPointerGetAttribute", "cuMemGetAddressRange_v2"}) {
      library.symbols.push_back({name, ""});
    }
    driver_ = LoadStub(library);
    library = {"libnvidia-ml.so.1", "libmemreplay_card.so", {13000, 0, 0, 0}, {}};
    for (const char* name : {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetGpuFabricInfoV",
                             "nvmlDeviceGetP2PStatus"}) {
      library.symbols.push_back({name, ""});
    }
    management_ = LoadStub(library);
  }

  template <typename... Arguments>
  static int Call(const char* name, Arguments... arguments) {
    void* function = dlsym(runtime_, name);
    if (function == nullptr) function = dlsym(driver_, name);
    if (function == nullptr) function = dlsym(management_, name);
    if (function == nullptr) function = dlsym(core_, name);
    EXPECT_NE(function, nullptr) << name;
    return reinterpret_cast<int (*)(Arguments...)>(function)(arguments...);
  }
  static uint64_t Number(void* address) { return reinterpret_cast<uint64_t>(address); }

  static bool HasRow(const std::string& rest);

  static inline void* core_;
  static inline void* runtime_;
  static inline void* driver_;
  static inline void* management_;
};

// PyTorch 2.13 queries this before it maps an expandable segment, and takes no refusal.
TEST_F(CardTest, BelongsToNoFabric) {
  void* card = nullptr;
  ASSERT_EQ(Call("nvmlDeviceGetHandleByIndex_v2", 0u, &card), 0);
  unsigned info[10];
  std::memset(info, 0xff, sizeof(info));
  info[0] = 36 | 2u << 24;  // nvmlGpuFabricInfo_v2_t
  EXPECT_EQ(Call("nvmlDeviceGetGpuFabricInfoV", card, &info[0]), 0);
  for (int word = 1; word < 9; ++word) EXPECT_EQ(info[word], 0u) << word;
  EXPECT_EQ(info[9], ~0u) << "past the structure";
}

// vLLM decides by this whether more than two ranks share buffers.
TEST_F(CardTest, ReachesOthersWithoutLinks) {
  void* card = nullptr;
  void* peer = nullptr;
  ASSERT_EQ(Call("nvmlDeviceGetHandleByIndex_v2", 0u, &card), 0);
  ASSERT_EQ(Call("nvmlDeviceGetHandleByIndex_v2", 1u, &peer), 0);
  int status = 7;
  EXPECT_EQ(Call("nvmlDeviceGetP2PStatus", card, peer, 0, &status), 0);
  EXPECT_EQ(status, 0) << "reads";
  EXPECT_EQ(Call("nvmlDeviceGetP2PStatus", card, peer, 2, &status), 0);
  EXPECT_EQ(status, 5) << "NVLink: not supported";
  EXPECT_NE(Call("nvmlDeviceGetP2PStatus", card, static_cast<void*>(nullptr), 0, &status), 0);
}

// vLLM shares the allocation that has a tensor of a captured graph, which begins anywhere in it.
TEST_F(CardTest, KnowsTheAllocationOfAnAddress) {
  void* memory = nullptr;
  ASSERT_EQ(Call("cudaMalloc", &memory, size_t{6} * kMiB), 0);
  uint64_t start = 0, length = 0;
  size_t size = 0;
  const uint64_t inside = Number(memory) + 5 * kMiB + 512;
  EXPECT_EQ(Call("cuPointerGetAttribute", &start, 11, inside), 0);
  EXPECT_EQ(start, Number(memory));
  EXPECT_EQ(Call("cuPointerGetAttribute", &length, 12, inside), 0);
  EXPECT_EQ(length, 6 * kMiB);
  start = 0;
  EXPECT_EQ(Call("cuMemGetAddressRange_v2", &start, &size, inside), 0);
  EXPECT_EQ(start, Number(memory));
  EXPECT_EQ(size, 6 * kMiB);
  EXPECT_EQ(Call("cudaFree", memory), 0);
  EXPECT_NE(Call("cuPointerGetAttribute", &start, 11, inside), 0) << "freed";
}

TEST_F(CardTest, HasItsMemoryAndNoMore) {
  int count = 0;
  EXPECT_EQ(Call("cudaGetDeviceCount", &count), 0);
  EXPECT_EQ(count, 2);
  size_t free_bytes = 0, total = 0, after = 0;
  ASSERT_EQ(Call("cudaMemGetInfo", &free_bytes, &total), 0);
  EXPECT_LT(free_bytes, total) << "the context takes some";
  void* first = nullptr;
  ASSERT_EQ(Call("cudaMalloc", &first, size_t{20} * kMiB), 0);
  ASSERT_EQ(Call("cudaMemGetInfo", &after, &total), 0);
  EXPECT_EQ(after, free_bytes - 20 * kMiB);
  void* second = nullptr;
  EXPECT_EQ(Call("cudaMalloc", &second, after + kMiB), 2) << "out of memory";
  EXPECT_EQ(second, nullptr);
  EXPECT_EQ(Call("cudaGetLastError"), 2);
  EXPECT_EQ(Call("cudaGetLastError"), 0);
  EXPECT_EQ(Call("cudaFree", first), 0);
  EXPECT_EQ(Call("cudaFree", first), 1) << "freed twice";
}

TEST_F(CardTest, SmallCopiesAreRealAndNothingElseIsKnown) {
  void* memory = nullptr;
  ASSERT_EQ(Call("cudaMalloc", &memory, size_t{2} * kMiB), 0);
  int value = 42, back = 7;
  EXPECT_EQ(Call("memreplay_card_known", Number(memory), sizeof value), 0);
  EXPECT_EQ(Call("cudaMemcpy", memory, static_cast<const void*>(&value), sizeof value, 1), 0);
  EXPECT_EQ(Call("memreplay_card_known", Number(memory), sizeof value), 1);
  EXPECT_EQ(Call("cudaMemcpy", static_cast<void*>(&back), static_cast<const void*>(memory),
                 sizeof back, 2),
            0);
  EXPECT_EQ(back, 42);
  // This copies from one place of the card to another; what is not known stays unknown.
  void* other = static_cast<char*>(memory) + 4096;
  EXPECT_EQ(Call("cudaMemcpy", other, static_cast<const void*>(memory), size_t{8}, 3), 0);
  EXPECT_EQ(Call("memreplay_card_known", Number(other), size_t{4}), 1);
  EXPECT_EQ(Call("memreplay_card_known", Number(other), size_t{8}), 0);
  // A large copy leaves nothing known.
  const std::vector<char> large(kMiB);
  EXPECT_EQ(Call("cudaMemcpy", memory, static_cast<const void*>(large.data()), large.size(), 1), 0);
  EXPECT_EQ(Call("memreplay_card_known", Number(memory), size_t{4}), 0);
  back = 7;
  EXPECT_EQ(Call("memreplay_card_read", Number(memory), static_cast<void*>(&back), sizeof back), 0);
  EXPECT_EQ(back, 0);
  EXPECT_EQ(Call("cudaFree", memory), 0);
}

TEST_F(CardTest, ZerosOfAnySizeAreKnownUntilTheyAreForgotten) {
  void* memory = nullptr;
  ASSERT_EQ(Call("cudaMalloc", &memory, size_t{2} * kMiB), 0);
  EXPECT_EQ(Call("cudaMemset", memory, 1, size_t{65536}), 0);
  // Neither end is that of a page.
  Call("memreplay_card_fill_with_zeros", Number(memory) + 100, size_t{kMiB});
  EXPECT_EQ(Call("memreplay_card_known", Number(memory), size_t{kMiB} + 100), 1);
  std::vector<char> bytes(65536);
  EXPECT_EQ(
      Call("memreplay_card_read", Number(memory), static_cast<void*>(bytes.data()), bytes.size()),
      1);
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 1), 100);
  Call("memreplay_card_forget", Number(memory) + 200, size_t{8});
  EXPECT_EQ(Call("memreplay_card_known", Number(memory) + 192, size_t{8}), 1);
  EXPECT_EQ(Call("memreplay_card_known", Number(memory) + 192, size_t{9}), 0);
  EXPECT_EQ(Call("cudaFree", memory), 0);
}

TEST_F(CardTest, ANewBlockIsUnknownWhoeverHadItBefore) {
  void* memory = nullptr;
  ASSERT_EQ(Call("cudaMalloc", &memory, size_t{2} * kMiB), 0);
  EXPECT_EQ(Call("cudaMemset", memory, 1, size_t{4096}), 0);
  EXPECT_EQ(Call("memreplay_card_known", Number(memory), size_t{4096}), 1);
  // This reports, as libc10_cuda.so does, a block of 512 bytes on card 0.
  Call("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE", memory, int64_t{512}, size_t{512},
       size_t{512}, uint16_t{1});
  EXPECT_EQ(Call("memreplay_card_known", Number(memory), size_t{1}), 0);
  EXPECT_EQ(Call("memreplay_card_known", Number(memory) + 512, size_t{3584}), 1);
  EXPECT_EQ(Call("cudaFree", memory), 0);
}

TEST_F(CardTest, AnAnswerIsGivenToTheNextCopyOfItsSize) {
  void* memory = nullptr;
  ASSERT_EQ(Call("cudaMalloc", &memory, size_t{2} * kMiB), 0);
  const int64_t count = 17;
  Call("memreplay_card_answer", static_cast<const void*>(&count), sizeof count);
  int narrow = 5;
  Call("cudaMemcpyAsync", static_cast<void*>(&narrow), static_cast<const void*>(memory),
       sizeof narrow, 2, static_cast<void*>(nullptr));
  EXPECT_EQ(narrow, 0) << "another size";
  int64_t wide = 5;
  Call("cudaMemcpyAsync", static_cast<void*>(&wide), static_cast<const void*>(memory), sizeof wide,
       2, static_cast<void*>(nullptr));
  EXPECT_EQ(wide, 17);
  Call("cudaMemcpyAsync", static_cast<void*>(&wide), static_cast<const void*>(memory), sizeof wide,
       2, static_cast<void*>(nullptr));
  EXPECT_EQ(wide, 0) << "once";
  EXPECT_EQ(Call("cudaFree", memory), 0);
}

TEST_F(CardTest, PagesAndReservations) {
  uint64_t address = 0, page = 0;
  ASSERT_EQ(
      Call("cuMemAddressReserve", &address, size_t{1} << 37, size_t{0}, uint64_t{0}, uint64_t{0}),
      0);
  ASSERT_EQ(Call("cuMemCreate", &page, size_t{20} * kMiB, static_cast<void*>(nullptr), uint64_t{0}),
            0);
  ASSERT_EQ(Call("cuMemMap", address, size_t{20} * kMiB, size_t{0}, page, uint64_t{0}), 0);
  const int value = 9;
  Call("memreplay_card_write", address, static_cast<const void*>(&value), sizeof value);
  EXPECT_EQ(Call("memreplay_card_known", address, sizeof value), 1);
  EXPECT_EQ(Call("cuMemRelease", page), 0);
  EXPECT_NE(Call("cuMemRelease", page), 0);
}

TEST_F(CardTest, WorkLagsUntilTheHostWaits) {
  void *event = nullptr, *stream = nullptr;
  ASSERT_EQ(Call("cudaEventCreate", &event), 0);
  ASSERT_EQ(Call("cudaStreamCreate", &stream), 0);
  EXPECT_EQ(Call("cudaEventQuery", event), 0) << "never recorded";
  EXPECT_EQ(Call("cudaEventRecord", event, stream), 0);
  EXPECT_EQ(Call("cudaEventQuery", event), 600) << "not ready";
  EXPECT_EQ(Call("cudaEventSynchronize", event), 0);
  EXPECT_EQ(Call("cudaEventQuery", event), 0);
  Call("cudaGetLastError");
}

TEST_F(CardTest, AStreamThatIsCapturedSaysSo) {
  void *stream = nullptr, *graph = nullptr;
  int status = 5;
  ASSERT_EQ(Call("cudaStreamCreate", &stream), 0);
  EXPECT_EQ(Call("cudaStreamBeginCapture", stream, 0), 0);
  EXPECT_EQ(Call("cudaStreamIsCapturing", stream, &status), 0);
  EXPECT_EQ(status, 1);
  EXPECT_EQ(Call("cudaStreamSynchronize", stream), 900);
  EXPECT_EQ(Call("cudaStreamEndCapture", stream, &graph), 0);
  EXPECT_NE(graph, nullptr);
  EXPECT_EQ(Call("cudaStreamIsCapturing", stream, &status), 0);
  EXPECT_EQ(status, 0);
  Call("cudaGetLastError");
}

TEST_F(CardTest, PropertiesAreLaidOutAsThisVersionDoes) {
  std::vector<char> properties(1008 + 8, 'x');
  ASSERT_EQ(Call("cudaGetDeviceProperties", static_cast<void*>(properties.data()), 0), 0);
  EXPECT_STREQ(properties.data(), "NVIDIA GeForce RTX 4090");
  int multiprocessors = 0, major = 0, blocks = 0;
  std::memcpy(&multiprocessors, &properties[384], 4);
  std::memcpy(&major, &properties[360], 4);
  std::memcpy(&blocks, &properties[688], 4);
  EXPECT_EQ(multiprocessors, 128);
  EXPECT_EQ(major, 8);
  EXPECT_EQ(blocks, 24);
  EXPECT_EQ(std::string(&properties[1008], 8), "xxxxxxxx") << "nothing behind the struct";
  EXPECT_EQ(Call("cudaGetDeviceProperties", static_cast<void*>(properties.data()), 2), 101);
}

// By this clock Triton decides how often it measures a kernel.
TEST_F(CardTest, TakesAMillisecondForALaunch) {
  void* memory = nullptr;
  void* begin = nullptr;
  void* end = nullptr;
  void* stream = nullptr;
  ASSERT_EQ(Call("cudaMalloc", &memory, size_t{2} * kMiB), 0);
  ASSERT_EQ(Call("cudaEventCreate", &begin), 0);
  ASSERT_EQ(Call("cudaEventCreate", &end), 0);
  EXPECT_EQ(Call("cudaEventRecord", begin, stream), 0);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Call("cudaMemset", memory, 0, size_t{kMiB}), 0);
  EXPECT_EQ(Call("cudaEventRecord", end, stream), 0);
  float milliseconds = 0;
  EXPECT_EQ(Call("cudaEventElapsedTime", &milliseconds, begin, end), 0);
  EXPECT_GE(milliseconds, 10.0F);
  EXPECT_LE(milliseconds, 12.0F);
  EXPECT_EQ(Call("cudaFree", memory), 0);
}

std::string Summary(void* core) {
  return reinterpret_cast<const char* (*)()>(dlsym(core, "memreplay_card_summary"))();
}

// This test is the script, and its calls do not come from PyTorch's allocator.
bool CardTest::HasRow(const std::string& rest) {
  return Summary(core_).find(R"({"library": "", )" + rest) != std::string::npos;
}

TEST_F(CardTest, NamesWhoAllocatesPastPyTorch) {
  void* runtime = nullptr;
  uint64_t driver = 0;
  ASSERT_EQ(Call("cudaMalloc", &runtime, size_t{3} * kMiB), 0);
  ASSERT_EQ(Call("cuMemAlloc_v2", &driver, size_t{2} * kMiB), 0);
  EXPECT_EQ(Call("cudaFree", runtime), 0);
  EXPECT_EQ(Call("cuMemFree_v2", reinterpret_cast<void*>(driver)), 0);
  EXPECT_EQ(Call("cuMemFree_v2", reinterpret_cast<void*>(driver)), 1) << "freed twice";
  EXPECT_TRUE(HasRow(R"("function": "cudaMalloc", "device": 0, )"));
  EXPECT_TRUE(HasRow(R"("function": "cuMemAlloc", "device": 0, "calls": 1, "most": 1, "peak": )" +
                     std::to_string(2 * kMiB)));
  EXPECT_TRUE(HasRow(R"("object": "CUDA context", "device": 0, "calls": 1, )"));
  Call("cudaGetLastError");
}

// A library with a copy of CUDA's runtime looks up all functions and cannot run.
TEST_F(CardTest, NotesARuntimeInAnotherLibraryInPlaceOfWhatItLooksUp) {
  void* found = this;
  int status = 0;
  const char* const name = "cuSomethingNew";
  EXPECT_EQ(Call("cuGetProcAddress_v2", name, &found, 13000, uint64_t{0}, &status), 500);
  EXPECT_EQ(found, nullptr);
  EXPECT_EQ(status, 1);
  EXPECT_NE(Summary(core_).find(R"("name": "cuSomethingNew")"), std::string::npos);
  EXPECT_EQ(Call("cuGetExportTable", &found, static_cast<const void*>(name)), 801);
  const std::string summary = Summary(core_);
  EXPECT_EQ(summary.find(R"("name": "cuSomethingNew")"), std::string::npos);
  EXPECT_NE(summary.find(R"("name": "CUDA's runtime")"), std::string::npos) << summary;
}

TEST_F(CardTest, PoolsKeepUpToTheirThreshold) {
  struct {
    int type = 1, handle_types = 0, location_type = 1, location_id = 1;
    uint64_t rest[8] = {};
  } properties;
  void *pool = nullptr, *by_default = nullptr, *current = nullptr;
  void* const stream = nullptr;
  uint64_t memory = 0, more = 0, held = 0;
  const uint64_t threshold = 64 * kMiB;
  const auto holds = [&](void* of) {
    EXPECT_EQ(Call("cuMemPoolGetAttribute", of, 5, static_cast<void*>(&held)), 0);
    return held;
  };
  ASSERT_EQ(Call("cuMemPoolCreate", &pool, static_cast<const void*>(&properties)), 0);
  EXPECT_EQ(Call("cuMemPoolSetAttribute", pool, 4, static_cast<const void*>(&threshold)), 0);
  ASSERT_EQ(Call("cuMemAllocFromPoolAsync", &memory, size_t{48} * kMiB, pool, stream), 0);
  EXPECT_EQ(holds(pool), 48 * kMiB);
  const int value = 3;
  Call("memreplay_card_write", memory, static_cast<const void*>(&value), sizeof value);
  EXPECT_EQ(Call("memreplay_card_known", memory, sizeof value), 1);
  EXPECT_EQ(Call("cuMemFreeAsync", memory, stream), 0);
  EXPECT_EQ(Call("cuMemFreeAsync", memory, stream), 1) << "freed twice";
  EXPECT_EQ(holds(pool), 48 * kMiB) << "less than the threshold";
  EXPECT_TRUE(
      HasRow(R"("function": "cuMemAllocFromPoolAsync", "device": 1, "calls": 1, "most": 1, )"
             R"("peak": )" +
             std::to_string(48 * kMiB)));
  EXPECT_EQ(Call("cuDeviceSetMemPool", 0, pool), 1) << "a pool of the other card";
  ASSERT_EQ(Call("cuDeviceSetMemPool", 1, pool), 0);
  ASSERT_EQ(Call("cudaSetDevice", 1), 0);
  ASSERT_EQ(Call("cuMemAllocAsync", &more, size_t{70} * kMiB, stream), 0);
  EXPECT_EQ(holds(pool), 70 * kMiB) << "the current pool of that card";
  EXPECT_EQ(Call("cudaFree", reinterpret_cast<void*>(more)), 0);
  EXPECT_EQ(holds(pool), threshold);
  EXPECT_EQ(Call("cuMemPoolDestroy", pool), 0);
  ASSERT_EQ(Call("cuDeviceGetMemPool", &current, 1), 0);
  ASSERT_EQ(Call("cuDeviceGetDefaultMemPool", &by_default, 1), 0);
  EXPECT_EQ(current, by_default);
  EXPECT_EQ(Call("cuMemPoolDestroy", by_default), 1);
  EXPECT_EQ(Call("cudaSetDevice", 0), 0);
  Call("cudaGetLastError");
}

TEST_F(CardTest, PinsUpToALimit) {
  const auto summary = [] { return Summary(core_); };
  void* first = nullptr;
  void* second = nullptr;
  ASSERT_EQ(Call("cudaHostAlloc", &first, size_t{32} * kMiB, 0u), 0);
  EXPECT_EQ(Call("cudaHostAlloc", &second, size_t{33} * kMiB, 0u), 2) << "64 MiB may be pinned";
  EXPECT_EQ(second, nullptr);
  std::vector<char> own(20 * kMiB);
  EXPECT_EQ(Call("cudaHostRegister", static_cast<void*>(own.data()), own.size(), 0u), 0);
  EXPECT_NE(summary().find(R"("pinned": {"peak": 54525952, "blocks": 2, "refused": 1, )"
                           R"("limit": 67108864, "from_gpu": 0, "lines": []})"),
            std::string::npos)
      << summary();
  EXPECT_EQ(Call("cudaFreeHost", first), 0);
  EXPECT_EQ(Call("cudaFreeHost", first), 1) << "freed twice";
  EXPECT_EQ(Call("cudaHostAlloc", &second, size_t{33} * kMiB, 0u), 0);
  EXPECT_EQ(Call("cudaFreeHost", second), 0);
  EXPECT_EQ(Call("cudaHostUnregister", static_cast<void*>(own.data())), 0);
  Call("cudaGetLastError");
}

// Returns how many pages of a range take memory.
size_t Resident(void* begin, size_t bytes) {
  std::vector<unsigned char> pages(bytes / 4096);
  EXPECT_EQ(mincore(begin, bytes, pages.data()), 0);
  return static_cast<size_t>(std::count_if(pages.begin(), pages.end(),
                                           [](unsigned char page) { return (page & 1) != 0; }));
}

TEST_F(CardTest, LargeCopiesToTheHostTakeNoMemoryOfIt) {
  constexpr size_t kSize = 32 * kMiB;
  void* memory = nullptr;
  ASSERT_EQ(Call("cudaMalloc", &memory, kSize), 0);
  for (const int sharing : {MAP_PRIVATE, MAP_SHARED}) {
    void* map = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(map, MAP_FAILED);
    auto* bytes = static_cast<char*>(map);
    std::memset(bytes, 1, kSize);
    // The range does not reach from the beginning of a page to the end of one.
    EXPECT_EQ(Call("cudaMemcpy", static_cast<void*>(bytes + 100), static_cast<const void*>(memory),
                   kSize - 300, 2),
              0);
    if (sharing == MAP_PRIVATE) {
      EXPECT_LE(Resident(map, kSize), 2u);
    }
    EXPECT_EQ(std::count(bytes, bytes + kSize, 0), static_cast<long>(kSize - 300));
    EXPECT_EQ(bytes[99], 1);
    EXPECT_EQ(bytes[kSize - 200], 1);
    munmap(map, kSize);
  }
  EXPECT_EQ(Call("cudaFree", memory), 0);
}

}  // namespace
}  // namespace memreplay::card

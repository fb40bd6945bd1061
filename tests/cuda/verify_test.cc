#include "cuda/verify.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "cuda/cuda_device.h"
#include "cuda/verify_pattern.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cuda/fake_driver/fake_driver.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// What the threads of the kernels do is done here on the memory of this machine.
class SharesTest : public testing::TestWithParam<uint64_t> {
 protected:
  static constexpr uint64_t kThreads = 7;
  void Fill(uint64_t seed) {
    for (uint64_t i = 0; i < kThreads; ++i) FillShare(Begin(), GetParam(), seed, i, kThreads);
  }
  uint64_t Check(uint64_t seed) {
    uint64_t bad = kNothingBad;
    for (uint64_t i = 0; i < kThreads; ++i) {
      bad = std::min(bad, CheckShare(Begin(), GetParam(), seed, i, kThreads));
    }
    return bad;
  }
  uint64_t Begin() const { return reinterpret_cast<uint64_t>(memory_.data()); }
  unsigned char* Bytes() { return reinterpret_cast<unsigned char*>(memory_.data()); }
  std::vector<uint64_t> memory_ = std::vector<uint64_t>(200);
};

TEST_P(SharesTest, FindTheFirstByteThatIsNotTheirs) {
  const uint64_t size = GetParam();
  Fill(5);
  EXPECT_EQ(Check(5), kNothingBad);
  EXPECT_EQ(Check(6), 0u);
  EXPECT_EQ(Bytes()[size], 0) << "wrote behind the block";
  for (uint64_t i = 0; i < size; ++i) {
    Bytes()[i] ^= 0x40;
    EXPECT_EQ(Check(5), i < size / 8 * 8 ? i / 8 * 8 : i);
    Bytes()[i] ^= 0x40;
  }
  EXPECT_EQ(Check(5), kNothingBad);
}
INSTANTIATE_TEST_SUITE_P(Sizes, SharesTest, testing::Values(1, 7, 8, 9, 64, 512, 1003));

TEST(PatternTest, WordsTellTheirSeed) {
  std::set<uint64_t> words;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    for (uint64_t address = 0x7f0000000000; address < 0x7f0000000400; address += 8) {
      const uint64_t word = PatternWord(seed, address);
      EXPECT_EQ(SeedOfWord(word, address), seed);
      words.insert(word);
    }
  }
  EXPECT_EQ(words.size(), 100u * 128);
}

class VerifyTest : public testing::Test {
 protected:
  VerifyTest() {
    auto verifier = BlockVerifier::Create(*context_);
    EXPECT_TRUE(verifier.ok()) << ToStd(verifier.status().message());
    verifier_ = *std::move(verifier);
    device_ = *CudaDevice::Create(*context_, {});
  }
  void TearDown() override {
    device_.reset();
    verifier_.reset();
    context_.reset();
    EXPECT_EQ(fake_.Leaks(), "");
  }
  void Alloc(AllocationId id, Address address, Bytes size) {
    verifier_->OnEvent(Make(EventKind::kAlloc, id, address, size));
  }
  void Free(AllocationId id) {
    verifier_->OnEvent(Make(EventKind::kFree, id, Address(), Bytes(0)));
  }
  static Event Make(EventKind kind, AllocationId id, Address address, Bytes size) {
    Event event;
    event.kind = kind;
    event.id = id;
    event.address = address;
    event.size = size;
    return event;
  }

  FakeDriver fake_{GiB(1)};
  std::unique_ptr<CudaContext> context_ = fake_.NewContext();
  std::unique_ptr<BlockVerifier> verifier_;
  std::unique_ptr<CudaDevice> device_;
};

TEST_F(VerifyTest, BlocksApartAreGood) {
  const Address segment = *device_->AllocateSegment(MiB(20));
  Alloc(0, segment, MiB(1));
  Alloc(1, segment + MiB(1), MiB(1));
  Free(0);
  Alloc(2, segment, Bytes(777));
  Free(1);
  Free(1);  // of a block that is not live: nothing
  verifier_->CheckLive();
  EXPECT_EQ(verifier_->blocks_filled(), 3u);
  EXPECT_EQ(verifier_->blocks_checked(), 3u);
  EXPECT_EQ(verifier_->bytes_checked(), MiB(2) + Bytes(777));
  EXPECT_EQ(verifier_->bad_blocks(), 0u);
  EXPECT_TRUE(context_->status().ok());
  // The host keeps the result, not the GPU.
  EXPECT_EQ(fake_.Held().free_bytes, (GiB(1) - MiB(20)).value());
}

TEST_F(VerifyTest, BlocksThatShareBytesAreNamed) {
  const Address segment = *device_->AllocateSegment(MiB(20));
  Alloc(4, segment, MiB(1));
  Alloc(9, segment + KiB(768), MiB(1));
  Free(4);
  Free(9);
  ASSERT_EQ(verifier_->bad().size(), 1u);
  const BadBlock& bad = verifier_->bad()[0];
  EXPECT_EQ(bad.id, 4u);
  EXPECT_EQ(bad.event, 2u);
  EXPECT_EQ(bad.address, segment);
  EXPECT_EQ(bad.offset, KiB(768));
  EXPECT_EQ(bad.written_by, 9u);
  EXPECT_THAT(bad.Text(),
              AllOf(HasSubstr("event 2: block 4 (1048576 bytes at 0x7f0000000000)"),
                    HasSubstr("from byte 786432 on"), HasSubstr("which is written by block 9")));
}

TEST_F(VerifyTest, ASharedTailIsFound) {
  const Address segment = *device_->AllocateSegment(MiB(2));
  Alloc(0, segment, Bytes(1001));
  Alloc(1, segment + Bytes(1000), Bytes(24));
  verifier_->CheckLive();
  ASSERT_EQ(verifier_->bad_blocks(), 1u);
  EXPECT_EQ(verifier_->bad()[0].id, 0u);
  EXPECT_EQ(verifier_->bad()[0].offset, Bytes(1000));
  EXPECT_FALSE(verifier_->bad()[0].written_by.has_value());  // one byte does not show it
}

TEST_F(VerifyTest, APageThatIsMappedTwiceIsFound) {
  const Address range = *device_->ReserveRange(MiB(40));
  ASSERT_TRUE(device_->MapPages(range, MiB(2), MiB(2)));
  fake_.AliasNextMap();
  ASSERT_TRUE(device_->MapPages(range + MiB(2), MiB(2), MiB(2)));
  Alloc(3, range + MiB(1), MiB(2));  // the end of one page and the beginning of the other
  Alloc(5, range, MiB(1));
  Free(3);
  ASSERT_EQ(verifier_->bad_blocks(), 1u);
  EXPECT_EQ(verifier_->bad()[0].id, 3u);
  EXPECT_EQ(verifier_->bad()[0].offset, MiB(1));
}

TEST_F(VerifyTest, APageThatIsNotThereIsNamed) {
  const Address range = *device_->ReserveRange(MiB(40));
  ASSERT_TRUE(device_->MapPages(range, MiB(4), MiB(2)));
  Alloc(11, range + MiB(3), MiB(2));
  EXPECT_THAT(std::string(ToStd(context_->status().message())),
              AllOf(HasSubstr("cuStreamSynchronize filling block 11 of 2097152 bytes at 0x1000003"),
                    HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS")));
  EXPECT_EQ(verifier_->blocks_filled(), 0u);
  // From then on the GPU answers nothing, and the context releases its memory: see TearDown().
  EXPECT_FALSE(device_->AllocateSegment(MiB(2)).has_value());
}

TEST_F(VerifyTest, KernelsThatTheDriverCannotLoadAreExplained) {
  fake_.Fail("cuModuleLoadData", 1, CUDA_ERROR_NO_BINARY_FOR_GPU);
  const auto verifier = BlockVerifier::Create(*context_);
  EXPECT_THAT(std::string(ToStd(verifier.status().message())),
              AllOf(HasSubstr("cuModuleLoadData"), HasSubstr("CUDA_ERROR_NO_BINARY_FOR_GPU"),
                    HasSubstr("the driver is for CUDA 13.0"), HasSubstr("compute capability 9.0")));
}

}  // namespace
}  // namespace memreplay

#include "cuda/cuda_driver.h"

#include <dlfcn.h>

#include <string>

#include "cuda/cuda_context.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cuda/fake_driver/fake_driver.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string Message(const absl::Status& status) { return std::string(ToStd(status.message())); }

TEST(CudaDriverTest, SaysWhichLibraryIsMissing) {
  const auto driver = CudaDriver::Open("/nowhere/libcuda.so.1");
  EXPECT_EQ(driver.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(driver.status()),
              AllOf(HasSubstr("no CUDA driver"), HasSubstr("/nowhere/libcuda.so.1"),
                    HasSubstr("No such file")));
}

TEST(CudaDriverTest, SaysWhichFunctionIsMissing) {
  const auto driver = CudaDriver::Open(FakeDriver::kIncomplete);
  EXPECT_EQ(driver.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(Message(driver.status()),
              AllOf(HasSubstr(FakeDriver::kIncomplete), HasSubstr("cuDriverGetVersion"),
                    HasSubstr("CUDA 11.2")));
}

TEST(CudaDriverTest, SaysThatThereIsNoGpu) {
  const FakeDriver fake(GiB(1));
  fake.SetGpus(0);
  const auto driver = CudaDriver::Open(FakeDriver::kLibrary);
  EXPECT_EQ(driver.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(driver.status()), HasSubstr("finds no GPU"));
}

TEST(CudaDriverTest, SaysWhyItDoesNotStart) {
  const FakeDriver fake(GiB(1));
  for (const char* call : {"cuInit", "cuDriverGetVersion", "cuDeviceGetCount"}) {
    fake.Fail(call, 1, CUDA_ERROR_UNKNOWN);
    const auto driver = CudaDriver::Open(FakeDriver::kLibrary);
    EXPECT_EQ(driver.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(Message(driver.status()), AllOf(HasSubstr(call), HasSubstr("CUDA_ERROR_UNKNOWN")));
  }
}

TEST(CudaDriverTest, TellsOutOfMemoryFromOtherErrors) {
  const FakeDriver fake(GiB(1));
  EXPECT_EQ(fake.driver().Error(CUDA_ERROR_OUT_OF_MEMORY, "cuMemAlloc", "of 8 bytes"),
            absl::ResourceExhaustedError(
                "cuMemAlloc of 8 bytes: CUDA_ERROR_OUT_OF_MEMORY (out of memory; code 2)"));
  EXPECT_EQ(fake.driver().Error(CUDA_ERROR_INVALID_VALUE, "cuMemMap", "").code(),
            absl::StatusCode::kInternal);
  EXPECT_EQ(fake.driver().VersionText(), "13.0");
}

TEST(CudaContextTest, KnowsItsCard) {
  const FakeDriver fake(GiB(3));
  {
    const auto context = fake.NewContext();
    EXPECT_EQ(context->card().name, "Fictional GPU");
    EXPECT_EQ(context->card().total, GiB(3));
    EXPECT_EQ(context->card().major, 9);
    EXPECT_EQ(context->card().granularity, MiB(2));
    EXPECT_EQ(context->FreeMemory(), GiB(3));
    EXPECT_NE(context->Stream(3), nullptr);
    EXPECT_EQ(context->Stream(3), context->Stream(3));
    EXPECT_NE(context->Stream(3), context->Stream(1));
  }
  EXPECT_EQ(fake.Leaks(), "");
}

TEST(CudaContextTest, SaysWhichGpusThereAre) {
  const FakeDriver fake(GiB(1));
  EXPECT_THAT(Message(CudaContext::Create(fake.driver(), 1).status()),
              HasSubstr("GPU 1: the driver reports 1 GPU, number 0"));
  EXPECT_THAT(Message(CudaContext::Create(fake.driver(), -1).status()), HasSubstr("GPU -1"));
  fake.SetGpus(2);
  const auto driver = CudaDriver::Open(FakeDriver::kLibrary);
  ASSERT_TRUE(driver.ok());
  EXPECT_TRUE(CudaContext::Create(**driver, 1).ok());
  EXPECT_THAT(Message(CudaContext::Create(**driver, 2).status()), HasSubstr("2 GPUs"));
}

TEST(CudaContextTest, LogsCallsBySize) {
  const FakeDriver fake(GiB(1));
  const auto context = fake.NewContext();
  for (const Bytes size : {MiB(2), MiB(20), MiB(2), GiB(2)}) {
    CUdeviceptr address = 0;
    const CUresult result = context->Call(DriverCall::kMemAlloc, size, context->api().cuMemAlloc,
                                          &address, size.value());
    if (result != CUDA_SUCCESS) continue;
    context->Call(DriverCall::kMemFree, size, context->api().cuMemFree, address);
  }
  const auto& rows = context->log().rows();
  EXPECT_EQ(rows.at({DriverCall::kMemAlloc, MiB(2)}).calls, 2u);
  EXPECT_EQ(rows.at({DriverCall::kMemAlloc, MiB(20)}).calls, 1u);
  EXPECT_EQ(rows.at({DriverCall::kMemAlloc, GiB(2)}).refused, 1u);
  EXPECT_EQ(context->log().Total(DriverCall::kMemFree).calls, 3u);
  EXPECT_EQ(context->log().Total(DriverCall::kMap).calls, 0u);
  EXPECT_GE(context->log().Total(DriverCall::kMemAlloc).max_ns, 0);
}

TEST(DriverCallLogTest, KeepsSumsAndMedians) {
  DriverCallLog log;
  for (const int64_t ns : {50, 10, 30, 20}) log.Add(DriverCall::kMap, MiB(2), ns, ns != 10);
  log.Add(DriverCall::kMap, MiB(20), 7, true);
  const DriverCallTimes& times = log.rows().at({DriverCall::kMap, MiB(2)});
  EXPECT_EQ(times.calls, 4u);
  EXPECT_EQ(times.refused, 1u);
  EXPECT_EQ(times.total_ns, 110);
  EXPECT_EQ(times.min_ns, 10);
  EXPECT_EQ(times.max_ns, 50);
  EXPECT_EQ(times.median_ns(), 30);  // the upper one of an even number
  const DriverCallTimes total = log.Total(DriverCall::kMap);
  EXPECT_EQ(total.calls, 5u);
  EXPECT_EQ(total.min_ns, 7);
  EXPECT_EQ(DriverCallName(DriverCall::kSetAccess), "cuMemSetAccess");
}

}  // namespace
}  // namespace memreplay

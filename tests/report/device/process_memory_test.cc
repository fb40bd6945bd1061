#include <gtest/gtest.h>

#include "hardware/outside_figures.h"
#include "report/device/device_report.h"

namespace memreplay {
namespace {

constexpr int64_t kOneGiB = int64_t{1} << 30;
constexpr int64_t kReserved = int64_t{3} << 30;

// A process that reserved 3 GiB of the first of two GPUs with 46 multiprocessors.
proto::RecordedProcess SampleProcess() {
  proto::RecordedProcess process;
  process.mutable_card()->set_multiprocessors(46);
  process.add_cards()->set_peak_reserved(kReserved);
  process.add_cards();
  return process;
}

proto::ImaginedCard::Outside* AddRow(const char* object, int64_t most,
                                     proto::RecordedProcess* process) {
  proto::ImaginedCard::Outside* row = process->mutable_card()->add_outside();
  row->set_object(object);
  row->set_most(most);
  return row;
}

TEST(ProcessMemory, IsWhatPyTorchReservedAndTheContext) {
  proto::RecordedProcess process = SampleProcess();
  AddRow("CUDA context", 1, &process);
  AddProcessMemory(&process);
  const auto& memory = process.cards(0).nvidia_smi();
  EXPECT_EQ(memory.bytes(), kReserved + 46 * kOutsidePerMultiprocessor.median);
  EXPECT_EQ(memory.low(), kReserved + 46 * kOutsidePerMultiprocessor.low);
  EXPECT_EQ(memory.high(), kReserved + 46 * kOutsidePerMultiprocessor.high);
  ASSERT_EQ(memory.parts_size(), 2);
  EXPECT_EQ(memory.parts(0).reports(), 0) << "recorded";
  EXPECT_GE(memory.parts(1).reports(), 20);
  EXPECT_FALSE(process.cards(1).has_nvidia_smi()) << "it has no context there";
}

TEST(ProcessMemory, CommunicatorsAndGraphsAreAdded) {
  proto::RecordedProcess process = SampleProcess();
  process.mutable_cards(0)->set_outside(kReserved);  // 1 GiB of it by other libraries
  AddRow("CUDA context", 1, &process);
  AddRow("NCCL communicator", 2, &process);
  AddRow("single-rank NCCL communicator", 1, &process);
  AddRow("captured kernel", 1000, &process);
  AddRow("captured kernel", 1000, &process)->set_device(1);
  proto::ImaginedCard::Outside* nccl = AddRow("", 2, &process);
  nccl->set_library("NCCL");
  nccl->set_peak(2 * kOneGiB);
  AddProcessMemory(&process);
  const auto& memory = process.cards(0).nvidia_smi();
  EXPECT_EQ(memory.bytes(), 6 * kOneGiB + 46 * kOutsidePerMultiprocessor.median +
                                kNcclOfOneRank.median + 1000 * kGraphLaunch.median);
  EXPECT_EQ(memory.low(), 4 * kOneGiB + 46 * kOutsidePerMultiprocessor.low +
                              2 * kNcclCommunicator.low + kNcclOfOneRank.low +
                              1000 * kGraphLaunch.low);
  ASSERT_EQ(memory.parts_size(), 6);
  EXPECT_EQ(memory.parts(2).what(), "allocated by other libraries");
  EXPECT_EQ(memory.parts(2).bytes(), kOneGiB);
  EXPECT_EQ(memory.parts(3).what(), "2 NCCL communicators");
  EXPECT_EQ(memory.parts(5).what(), "1,000 kernels in CUDA graphs");
}

TEST(ProcessMemory, IsNotEstimatedOnARealGpuOrInMemoryOfTheHost) {
  proto::RecordedProcess real = SampleProcess();
  real.clear_card();
  AddProcessMemory(&real);
  EXPECT_FALSE(real.cards(0).has_nvidia_smi());
  proto::RecordedProcess shared = SampleProcess();
  AddRow("CUDA context", 1, &shared);
  shared.mutable_card()->mutable_pinned()->set_from_gpu(1);
  AddProcessMemory(&shared);
  EXPECT_FALSE(shared.cards(0).has_nvidia_smi());
}

// What the reports say of one multiprocessor agrees across GPUs of very different sizes.
TEST(OutsideFigures, AreOrderedAndNarrowForTheContext) {
  for (const OutsideFigure& figure : {kOutsidePerMultiprocessor, kContextPerMultiprocessor,
                                      kNcclCommunicator, kNcclOfOneRank, kGraphLaunch}) {
    EXPECT_GE(figure.reports, 2);
    EXPECT_GT(figure.low, 0);
    EXPECT_LE(figure.low, figure.median);
    EXPECT_LE(figure.median, figure.high);
  }
  EXPECT_LT(kOutsidePerMultiprocessor.high, 2 * kOutsidePerMultiprocessor.low);
}

}  // namespace
}  // namespace memreplay

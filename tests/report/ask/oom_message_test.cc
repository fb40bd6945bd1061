#include "report/ask/oom_message.h"

#include <gtest/gtest.h>

#include <string>

namespace memreplay {
namespace {

TEST(ParseOomMessage, OfToday) {
  const auto message = ParseOomMessage(
      "Traceback (most recent call last):\n  File \"train.py\", line 3\n"
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total "
      "capacity of 178.35 GiB of which 1.68 GiB is free. Process 4711 has 176.66 GiB memory in "
      "use. Of the allocated\nmemory 159.21 GiB is allocated by PyTorch, with 418.00 MiB allocated "
      "in private pools (e.g., CUDA Graphs), and 16.57 GiB is reserved by PyTorch but "
      "unallocated. If reserved but unallocated memory is large try setting ...");
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(message->device, 1);
  EXPECT_EQ(message->numbers.tried, GiB(2));
  EXPECT_EQ(*message->private_pools, MiB(418));
  EXPECT_EQ(message->numbers.device_free, Bytes(1803886264));
  EXPECT_EQ(JudgeNumbers(message->numbers), OomVerdict::kFragmentation);
  const proto::Report report = OomMessageReport(*message);
  EXPECT_EQ(report.oom().verdict(), proto::Verdict::fragmentation);
  EXPECT_EQ(report.oom().requested_bytes(), int64_t{2} << 30);
}

TEST(ParseOomMessage, WithALimit) {
  const auto message = ParseOomMessage(
      "CUDA out of memory. Tried to allocate 40.00 MiB. GPU 0 has a total capacity of 16.00 GiB "
      "of which 15.00 GiB is free. 100.00 MiB allowed; Of the allocated memory 70.00 MiB is "
      "allocated by PyTorch, and 10.00 MiB is reserved by PyTorch but unallocated.");
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(Obtainable(message->numbers), MiB(30));
  EXPECT_EQ(JudgeNumbers(message->numbers), OomVerdict::kTrueShortage);
}

TEST(ParseOomMessage, Of21MisspellsCapacity) {
  const auto message = ParseOomMessage(
      "CUDA out of memory. Tried to allocate 158.00 MiB. GPU 0 has a total capacty of 23.69 GiB "
      "of which 115.69 MiB is free. Including non-PyTorch memory, this process has 23.57 GiB "
      "memory in use. Of the allocated memory 22.14 GiB is allocated by PyTorch, and 910.35 MiB is "
      "reserved by PyTorch but unallocated.");
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(message->layout, "2.1");
  EXPECT_EQ(*message->in_use_by_process, Bytes(25308094792));
  EXPECT_EQ(JudgeNumbers(message->numbers), OomVerdict::kFragmentation);
}

TEST(ParseOomMessage, Of20) {
  const auto message = ParseOomMessage(
      "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 15.78 GiB total "
      "capacity; 14.25 GiB already allocated; 512 bytes free; 14.50 GiB reserved in total by "
      "PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb");
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(message->layout, "2.0");
  EXPECT_EQ(message->numbers.device_free, Bytes(512));
  EXPECT_EQ(message->numbers.reserved_unallocated, GiB(14) + MiB(512) - GiB(14) - MiB(256));
  EXPECT_EQ(JudgeNumbers(message->numbers), OomVerdict::kFragmentation);
}

TEST(ParseOomMessage, TheLastOfALog) {
  const std::string first =
      "Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 4.00 GiB of which 3.00 GiB is "
      "free. Of the allocated memory 1.00 GiB is allocated by PyTorch, and 0 bytes is reserved by "
      "PyTorch but unallocated.\n";
  std::string second = first;
  second.replace(second.find("1.00"), 4, "9.00");
  const auto message = ParseOomMessage(first + second);
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(message->numbers.tried, GiB(9));
  const proto::Report report = OomMessageReport(*message);
  EXPECT_EQ(report.oom().notes(0), "the request is larger than the card");
}

TEST(ParseOomMessage, SaysWhatIsMissing) {
  EXPECT_EQ(ParseOomMessage("no such thing").status().code(), absl::StatusCode::kInvalidArgument);
  const auto cut = ParseOomMessage("Tried to allocate 1.00 GiB. GPU 0 has a total capacity of");
  EXPECT_NE(cut.status().message().find("free"), absl::string_view::npos) << cut.status();
  EXPECT_FALSE(ParseOomMessage("Tried to allocate lots").ok());
}

}  // namespace
}  // namespace memreplay

#include "report/message/passage.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "report/message/explain.h"

namespace memreplay {
namespace {

std::string Squeezed(std::string_view text, std::string_view place) {
  return PassageAround(text, text.find(place), 60, 200).text;
}

TEST(Passage, LinesOfOneMessageAreJoined) {
  EXPECT_EQ(Squeezed("memory 43.\n94 GiB is\nfree", "memory"), "memory43.94GiB isfree");
  EXPECT_EQ(Squeezed("> memory 43.\n> 94 Gi\n> B is free", "memory"), ">memory43.94GiB isfree");
  EXPECT_EQ(Squeezed("[rank0]: memory 4\n[rank0]: 3.94 GiB", "emory"), "[rank0]:memory43.94GiB");
  EXPECT_EQ(Squeezed("2026-01-02T03:04:05.6Z memory 4\n2026-01-02T03:04:05.71Z 3 GiB", "emory"),
            "2026-01-02T03:04:05.6Zmemory43GiB");
}

TEST(Passage, LinesOfAnotherRankAreNot) {
  EXPECT_EQ(Squeezed("[rank0]: memory 4\n[rank1]: 7\n[rank0]: 3 GiB", "emory"),
            "[rank0]:memory43GiB");
  EXPECT_EQ(Squeezed("  12  memory 4\n  13  3 GiB", "emory"), "12memory4 ");
}

TEST(Passage, ColoursAreNoText) {
  EXPECT_EQ(Squeezed("memory \x1b[1;36m43.94\x1b[0m GiB", "memory"), "memory43.94GiB");
  EXPECT_EQ(Squeezed("memory [1;36m43.94[0m GiB", "memory"), "memory43.94GiB");
}

TEST(Passage, Utf16) {
  const std::string little(
      "\xff\xfe"
      "o\0\xe9\0\x87\x98",
      8);
  EXPECT_EQ(FromUtf16(std::string_view(little).substr(2), true), "o\u00e9\u9887");
  std::string text = "\xff\xfe";
  for (const char c : std::string("CUDA out of memory. Tried to allocate 2.00 GiB.\r\n")) {
    text += {c, '\0'};
  }
  LogScan scan;
  for (size_t at = 0; at < text.size(); at += 3) scan.Add(std::string_view(text).substr(at, 3));
  const auto report = Explain(&scan);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->explanation().figures(0).bytes(), int64_t{2} << 30);
}

}  // namespace
}  // namespace memreplay

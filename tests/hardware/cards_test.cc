#include "hardware/cards.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace memreplay {
namespace {

constexpr uint64_t kMebibyte = uint64_t{1} << 20;

std::string NameOf(const char* text) {
  std::string error;
  const std::optional<Card> card = FindCard(text, &error);
  return card.has_value() ? card->name : error;
}

TEST(Cards, AreFoundByNameTitleAndPart) {
  for (const char* text : {"rtx-4090", "RTX 4090", "rtx4090", "NVIDIA GeForce RTX 4090", "4090"}) {
    EXPECT_EQ(NameOf(text), "rtx-4090") << text;
  }
  EXPECT_EQ(NameOf("4090 d"), "rtx-4090-d");
  EXPECT_EQ(NameOf("4060 laptop"), "rtx-4060-laptop");
  EXPECT_EQ(NameOf("a100 sxm 80gb"), "a100-sxm-80gb") << "the whole GPU, not one of its slices";
  EXPECT_EQ(NameOf("a100 80gb mig 3g"), "a100-sxm-80gb-mig-3g.40gb");
  EXPECT_EQ(NameOf("h100"), "several GPUs match: h100-pcie, h100-sxm, h100-nvl");
  EXPECT_EQ(NameOf("a100-80gb"), "several GPUs match: a100-pcie-80gb, a100-sxm-80gb");
}

TEST(Cards, AWrongNameIsAnsweredWithWhatThereIs) {
  EXPECT_NE(NameOf("voodoo-2").find("no such GPU; --card list"), std::string::npos);
  EXPECT_NE(NameOf("rtx-4091").find("rtx-4090"), std::string::npos) << NameOf("rtx-4091");
  EXPECT_NE(NameOf("").find("no such GPU"), std::string::npos);
  EXPECT_NE(NameOf("-").find("no such GPU"), std::string::npos);
  EXPECT_NE(NameOf("NVIDIA").find("several"), std::string::npos);
}

TEST(Cards, MemoryIsThatOfTheSystem) {
  std::string error;
  EXPECT_EQ(FindCard("rtx-4070", &error)->memory, 12002 * kMebibyte);
  EXPECT_EQ(FindCard("rtx-4070:linux", &error)->memory, 12002 * kMebibyte);
  EXPECT_EQ(FindCard("4070:windows", &error)->memory, 12282 * kMebibyte);
  EXPECT_EQ(FindCard("rtx-4080", &error)->memory, 16376 * kMebibyte) << "only Windows' is known";
  EXPECT_FALSE(FindCard("rtx-4080:linux", &error).has_value());
  EXPECT_NE(error.find("on Linux was found"), std::string::npos) << error;
}

TEST(Cards, OneOfYourOwn) {
  std::string error;
  const std::optional<Card> card = FindCard("custom:11.5GiB,cc=8.9,sms=46", &error);
  ASSERT_TRUE(card.has_value()) << error;
  EXPECT_EQ(card->memory, 11776 * kMebibyte);
  EXPECT_EQ(card->capability, 89);
  EXPECT_EQ(card->multiprocessors, 46);
  EXPECT_EQ(FindCard("custom:sms=1,cc=12.0,1048576", &error)->memory, kMebibyte);
  for (const char* wrong :
       {"custom:", "custom:12GiB", "custom:12GiB,cc=8.9", "custom:12GiB,cc=89,sms=46",
        "custom:12GiB,cc=8.9,sms=0", "custom:12GB,cc=8.9,sms=46", "custom:12GiB,13GiB,cc=8.9,sms=4",
        "custom:12GiB,cc=8.9,sms=46,", "custom:99999999999999999999GiB,cc=8.9,sms=46",
        "custom:1.2345GiB,cc=8.9,sms=46", "custom:12GiB,cc=8.,sms=46"}) {
    EXPECT_FALSE(FindCard(wrong, &error).has_value()) << wrong;
    EXPECT_EQ(error, "expected custom:SIZE,cc=MAJOR.MINOR,sms=N") << wrong;
  }
  EXPECT_FALSE(FindCard("custom:12GiB,cc=3.5,sms=46", &error).has_value());
  EXPECT_EQ(error, "cc=3.5 is none of 6.0 6.1 7.0 7.5 8.0 8.6 8.7 8.9 9.0 10.0 10.3 12.0 12.1");
}

TEST(Cards, TheTableIsWhole) {
  std::set<std::string> names;
  std::map<std::string, int> groups;  // position
  std::string group;
  for (const Card& card : AllCards()) {
    EXPECT_TRUE(names.insert(card.name).second) << card.name << " twice";
    EXPECT_EQ(NameOf(card.name.c_str()), card.name);
    if (card.group != group) {
      group = card.group;
      EXPECT_TRUE(groups.emplace(group, 0).second) << group << " in two places";
    }
    EXPECT_NE(CapabilityOf(card).number, 0) << card.name << ": no such capability";
    EXPECT_GT(card.memory, 3000 * kMebibyte) << card.name;
    EXPECT_GT(card.multiprocessors, 0) << card.name;
    EXPECT_FALSE(card.source.empty()) << card.name;
    if (card.linux_memory != 0 && card.windows_memory != 0 && !card.is_nominal) {
      EXPECT_LT(card.linux_memory, card.windows_memory) << card.name;
      EXPECT_LT(card.windows_memory - card.linux_memory, 600 * kMebibyte) << card.name;
    }
  }
  EXPECT_GE(names.size(), 60u);
}

// The other column is what NVIDIA's data sheets and white papers say, in TFLOP/s and GB/s.
TEST(Cards, RatesAreThoseOfTheDataSheets) {
  struct Published {
    const char* name;
    double float32, tf32, float16, memory;
  };
  for (const Published& sheet : {
           Published{"gtx-1080-ti", 11.3, 0, 11.3, 484},
           {"v100-sxm-16gb", 15.7, 0, 125, 900},
           {"t4", 8.1, 0, 65, 320},
           {"rtx-2080-ti", 13.4, 0, 53.8, 616},
           {"titan-rtx", 16.3, 0, 130.5, 672},
           {"a100-sxm-40gb", 19.5, 156, 312, 1555},
           {"a100-sxm-80gb", 19.5, 156, 312, 2039},
           {"a30", 10.3, 82, 165, 933},
           {"a10", 31.2, 62.5, 125, 600},
           {"a40", 37.4, 74.8, 149.7, 696},
           {"rtx-3070", 20.3, 20.3, 40.6, 448},
           {"rtx-3080", 29.8, 29.8, 59.5, 760},
           {"rtx-3090", 35.6, 35.6, 71, 936},
           {"rtx-a6000", 38.7, 77.4, 154.8, 768},
           {"rtx-4070", 29.1, 29.1, 58.3, 504},
           {"rtx-4090", 82.6, 82.6, 165.2, 1008},
           {"l4", 30.3, 60, 121, 300},
           {"l40s", 91.6, 183, 362, 864},
           {"rtx-6000-ada", 91.1, 182, 364, 960},
           {"h100-sxm", 66.9, 494.7, 989.4, 3350},
           {"h100-pcie", 51.2, 378, 756, 2039},
           {"h200", 66.9, 494.7, 989.4, 4800},
           {"b200", 75, 1125, 2250, 8000},
           {"rtx-5090", 104.8, 104.8, 209.5, 1792},
           {"rtx-pro-6000-workstation", 126, 251.9, 503.8, 1792},
       }) {
    std::string error;
    const Rates rates = RatesOf(FindCard(sheet.name, &error).value());
    EXPECT_NEAR(rates.float32, sheet.float32 * 1e12, 0.04e12 * sheet.float32) << sheet.name;
    EXPECT_NEAR(rates.float16, sheet.float16 * 1e12, 0.02e12 * sheet.float16) << sheet.name;
    EXPECT_NEAR(rates.memory, sheet.memory * 1e9, 0.03e9 * sheet.memory) << sheet.name;
    if (sheet.tf32 == 0) {
      EXPECT_EQ(rates.tf32, rates.float32) << sheet.name << " has no such type";
      EXPECT_EQ(rates.bfloat16, rates.float32) << sheet.name << " has no such type";
    } else {
      EXPECT_NEAR(rates.tf32, sheet.tf32 * 1e12, 0.02e12 * sheet.tf32) << sheet.name;
      EXPECT_EQ(rates.bfloat16, rates.float16) << sheet.name;
    }
  }
  const auto host = [](const char* name) {
    std::string error;
    return RatesOf(FindCard(name, &error).value()).host / 1e9;
  };
  EXPECT_NEAR(host("t4"), 15.8, 0.1);
  EXPECT_NEAR(host("rtx-4090"), 31.5, 0.1);
  EXPECT_NEAR(host("rtx-4060"), 15.8, 0.1);
  EXPECT_NEAR(host("h100-sxm"), 63, 0.1);
}

TEST(Cards, RatesAreUnknownWithoutClocks) {
  for (const Card& card : AllCards()) {
    const Rates rates = RatesOf(card);
    const bool knows = card.clock_khz > 0 && card.memory_clock_khz > 0 &&
                       card.group != "MIG slices" && card.group != "Unified memory and Jetson";
    for (const double rate :
         {rates.float32, rates.tf32, rates.float16, rates.bfloat16, rates.memory, rates.host}) {
      EXPECT_EQ(rate > 0, knows) << card.name;
    }
  }
  std::string error;
  EXPECT_EQ(RatesOf(FindCard("custom:12GiB,cc=8.9,sms=46", &error).value()).float32, 0);
}

TEST(Cards, TheTotalIsKnownWhereOneSizeFits) {
  EXPECT_EQ(TotalOfCardWith(79 * 1024 * kMebibyte), 81008 * kMebibyte)
      << "A100s and H100s of 80 GB are within 150 MiB";
  EXPECT_EQ(TotalOfCardWith(10000 * kMebibyte), std::nullopt) << "RTX 3080, 2080 Ti, 1080 Ti";
  EXPECT_EQ(TotalOfCardWith(9 * kMebibyte), std::nullopt);
  EXPECT_EQ(TotalOfCardWith(~uint64_t{0}), std::nullopt);
  const std::optional<uint64_t> h200 = TotalOfCardWith(142500 * kMebibyte);
  ASSERT_TRUE(h200.has_value());
  EXPECT_EQ(*h200, 143156 * kMebibyte);
}

}  // namespace
}  // namespace memreplay

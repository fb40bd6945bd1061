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

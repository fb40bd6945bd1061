#include "record/card/cards.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "record/card/settings.h"

namespace memreplay::card {
namespace {

TEST(Cards, AreFoundByNameTitleAndPart) {
  std::string error;
  for (const char* name : {"rtx-4090", "RTX 4090", "rtx4090", "NVIDIA GeForce RTX 4090", "4090"}) {
    const Card* card = FindCard(name, &error);
    ASSERT_NE(card, nullptr) << name << ": " << error;
    EXPECT_STREQ(card->name, "rtx-4090");
  }
}

TEST(Cards, AWrongNameIsAnsweredWithTheTable) {
  std::string error;
  EXPECT_EQ(FindCard("voodoo-2", &error), nullptr);
  EXPECT_NE(error.find("no such card"), std::string::npos);
  EXPECT_NE(error.find("rtx-4090"), std::string::npos);
  EXPECT_EQ(FindCard("NVIDIA", &error), nullptr) << "several cards";
  EXPECT_NE(error.find("several"), std::string::npos);
  EXPECT_EQ(FindCard("", &error), nullptr);
}

TEST(Cards, TheTableIsWhole) {
  const std::string list = ListCards();
  std::size_t cards = 0;
  for (std::size_t at = list.find("\"name\": "); at != std::string::npos;
       at = list.find("\"name\": ", at + 1)) {
    const std::size_t start = at + 9;
    const std::string name = list.substr(start, list.find('"', start) - start);
    std::string error;
    const Card* card = FindCard(name.c_str(), &error);
    ASSERT_NE(card, nullptr) << name << ": " << error;
    ++cards;
    EXPECT_EQ(CapabilityOf(*card).number, card->capability) << name << ": no such capability";
    EXPECT_GT(card->memory, std::uint64_t{8} << 30) << name;
    EXPECT_GT(card->multiprocessors, 0) << name;
    EXPECT_STRNE(card->source, "") << name;
  }
  EXPECT_GE(cards, 10U);
}

class SettingsTest : public testing::Test {
 protected:
  void TearDown() override {
    for (const char* name : {"", "_CAPACITY", "_RESERVE", "_COUNT", "_COMPLETION", "_ADDRESSES"}) {
      unsetenv((std::string("MEMREPLAY_CARD") + name).c_str());
    }
  }
};

TEST_F(SettingsTest, DefaultsAreTheTables) {
  const Settings settings = SettingsFromEnvironment();
  ASSERT_NE(settings.card, nullptr) << settings.error;
  EXPECT_EQ(settings.capacity, settings.card->memory);
  EXPECT_EQ(settings.reserve, kContextBytes);
  EXPECT_EQ(settings.completion, Streams::Completion::kLagging);
  EXPECT_EQ(settings.cards, 1);
}

TEST_F(SettingsTest, TheEnvironmentDecides) {
  setenv("MEMREPLAY_CARD", "h100-sxm", 1);
  setenv("MEMREPLAY_CARD_CAPACITY", "12345678", 1);
  setenv("MEMREPLAY_CARD_RESERVE", "0", 1);
  setenv("MEMREPLAY_CARD_COUNT", "4", 1);
  setenv("MEMREPLAY_CARD_COMPLETION", "at-once", 1);
  setenv("MEMREPLAY_CARD_ADDRESSES", "upwards", 1);
  const Settings settings = SettingsFromEnvironment();
  ASSERT_NE(settings.card, nullptr) << settings.error;
  EXPECT_EQ(settings.card->capability, 90);
  EXPECT_EQ(settings.capacity, 12345678U);
  EXPECT_EQ(settings.reserve, 0U);
  EXPECT_EQ(settings.cards, 4);
  EXPECT_EQ(settings.completion, Streams::Completion::kAtOnce);
  EXPECT_EQ(settings.addresses, AddressOrder::kUpwards);
  EXPECT_EQ(settings.below_first_kernel, DriverAddresses::kBelowFirstKernel);
  setenv("MEMREPLAY_CARD_ADDRESSES", "upwards:83886080", 1);
  EXPECT_EQ(SettingsFromEnvironment().below_first_kernel, 83886080U);
  setenv("MEMREPLAY_CARD_ADDRESSES", "upwards:", 1);
  EXPECT_EQ(SettingsFromEnvironment().card, nullptr);
}

TEST_F(SettingsTest, WhatIsWrongIsSaid) {
  const char* const kWrong[][2] = {{"MEMREPLAY_CARD", "voodoo"},
                                   {"MEMREPLAY_CARD_CAPACITY", "24G"},
                                   {"MEMREPLAY_CARD_CAPACITY", "-1"},
                                   {"MEMREPLAY_CARD_COUNT", "65"},
                                   {"MEMREPLAY_CARD_COMPLETION", "soon"}};
  for (const auto& [variable, value] : kWrong) {
    setenv(variable, value, 1);
    const Settings settings = SettingsFromEnvironment();
    EXPECT_EQ(settings.card, nullptr) << variable;
    EXPECT_NE(settings.error.find(std::string(variable) + "=" + value), std::string::npos)
        << settings.error;
    unsetenv(variable);
  }
}

}  // namespace
}  // namespace memreplay::card

#include "record/card/model/settings.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "hardware/outside_figures.h"

namespace memreplay::card {
namespace {

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
  ASSERT_TRUE(settings.card.has_value()) << settings.error;
  EXPECT_EQ(settings.capacity, settings.card->memory);
  const AssumedOutside outside = AssumeOutside(128);  // of an RTX 4090
  EXPECT_EQ(settings.reserve, static_cast<uint64_t>(outside.bytes));
  EXPECT_EQ(settings.reserve_reason, outside.reason);
  EXPECT_EQ(settings.completion, Streams::Completion::kLagging);
  EXPECT_EQ(settings.cards, 1);
}

TEST_F(SettingsTest, TheEnvironmentDecides) {
  setenv("MEMREPLAY_CARD", "h100-sxm", 1);
  setenv("MEMREPLAY_CARD_CAPACITY", "12345678", 1);
  setenv("MEMREPLAY_CARD_RESERVE", "0", 1);
  setenv("MEMREPLAY_CARD_COUNT", "4", 1);
  setenv("MEMREPLAY_CARD_COMPLETION", "at-once", 1);
  setenv("MEMREPLAY_CARD_ADDRESSES", "up", 1);
  const Settings settings = SettingsFromEnvironment();
  ASSERT_TRUE(settings.card.has_value()) << settings.error;
  EXPECT_EQ(settings.card->capability, 90);
  EXPECT_EQ(settings.capacity, 12345678U);
  EXPECT_EQ(settings.reserve, 0U);
  EXPECT_EQ(settings.reserve_reason, "--reserve");
  EXPECT_EQ(settings.cards, 4);
  EXPECT_EQ(settings.completion, Streams::Completion::kAtOnce);
  EXPECT_EQ(settings.addresses, AddressOrder::kUpwards);
  EXPECT_EQ(settings.below_first_kernel, DriverAddresses::kBelowFirstKernel);
  setenv("MEMREPLAY_CARD_ADDRESSES", "up:83886080", 1);
  EXPECT_EQ(SettingsFromEnvironment().below_first_kernel, 83886080U);
  setenv("MEMREPLAY_CARD_ADDRESSES", "up:", 1);
  EXPECT_FALSE(SettingsFromEnvironment().card.has_value());
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
    EXPECT_FALSE(settings.card.has_value()) << variable;
    EXPECT_NE(settings.error.find(std::string(variable) + "=" + value), std::string::npos)
        << settings.error;
    unsetenv(variable);
  }
}

}  // namespace
}  // namespace memreplay::card

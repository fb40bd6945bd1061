#include "sim/settings/torch_profile.h"

#include <string>

#include "gtest/gtest.h"

namespace memreplay {
namespace {

TEST(TorchProfiles, OneRowPerReleaseOldestFirst) {
  ASSERT_EQ(AllTorchProfiles().size(), 16u);
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(AllTorchProfiles()[i].release, "2." + std::to_string(i));
  }
}

TEST(FindTorchProfile, AcceptsEveryUsualSpelling) {
  const struct {
    const char* version;
    const char* release;
  } kCases[] = {
      {"2.6", "2.6"},         {"2.6.0", "2.6"},           {"v2.6.1+cu124", "2.6"},
      {"2.0.1", "2.0"},       {"2.6.0a0+git1234", "2.6"}, {"2.11.0rc1", "2.11"},
      {"2.10.0+cpu", "2.10"}, {"2.1a0", "2.1"},           {"2.15-dev", "2.15"},
  };
  for (const auto& c : kCases) {
    const auto found = FindTorchProfile(c.version);
    ASSERT_TRUE(found.ok()) << c.version << ": " << found.status();
    EXPECT_EQ((*found)->release, c.release) << c.version;
  }
}

TEST(FindTorchProfile, NamesWhatItKnows) {
  const auto old = FindTorchProfile("1.13.1");
  EXPECT_EQ(old.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(old.status().message().find("the supported releases are 2.0, 2.1"), std::string::npos);
  const auto newer = FindTorchProfile("2.16.0");
  EXPECT_EQ(newer.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(newer.status().message().find("newest supported release, 2.15"), std::string::npos);
  EXPECT_EQ(FindTorchProfile("3.0").status().code(), absl::StatusCode::kNotFound);
  for (const char* version :
       {"", "2", "2.", ".6", "two", "2.x", "v", "2,6", "99999.1", "2.99999999999999999999"}) {
    EXPECT_EQ(FindTorchProfile(version).status().code(), absl::StatusCode::kInvalidArgument)
        << version;
  }
}

TEST(TorchProfiles, WhatAReleaseGainedStaysInLaterOnes) {
  const auto rows = AllTorchProfiles();
  for (size_t i = 1; i < rows.size(); ++i) {
    for (int key = 0; key <= static_cast<int>(ConfKey::kExpandableSegmentsReserveByClass); ++key) {
      EXPECT_GE(rows[i].conf_keys.Has(ConfKey(key)), rows[i - 1].conf_keys.Has(ConfKey(key)))
          << rows[i].release << " key " << key;
    }
    EXPECT_GE(rows[i].counts_device_calls, rows[i - 1].counts_device_calls);
    EXPECT_GE(rows[i].use_on_oom, rows[i - 1].use_on_oom);
    EXPECT_GE(rows[i].newest_pool_first, rows[i - 1].newest_pool_first);
  }
}

TEST(TorchProfiles, DefaultIsARowOfTheTable) {
  const TorchProfile& chosen = DefaultTorchProfile();
  EXPECT_GE(&chosen, AllTorchProfiles().begin());
  EXPECT_LT(&chosen, AllTorchProfiles().end());
}

}  // namespace
}  // namespace memreplay

#include "record/gather.h"

#include <gtest/gtest.h>

#include <string>

#include "proto/record.pb.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

const std::string kVersion = StrCat(proto::Wishes::current);
const std::string kThisVersion = StrCat("\"version\":", kVersion);

std::string ErrorOf(std::string_view version, std::string_view process) {
  const auto parsed = ParseRecordedProcess(
      StrCat("{", version, version.empty() ? "" : ",", "\"process\":{", process, "}}"));
  return parsed.ok() ? "" : std::string(parsed.status().message());
}

TEST(ParseRecordedProcess, OneOfThisVersion) {
  const auto parsed = ParseRecordedProcess(
      StrCat("{", kThisVersion,
             R"(,"process":{"rank":3,"error":"KeyError","card":null,"cards":[{"ooms":2}]}})"));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->name(), "rank 3");
  EXPECT_EQ(parsed->ooms(), 2);
}

TEST(ParseRecordedProcess, ThatOfAnotherVersionSaysWhichIsOlder) {
  EXPECT_EQ(ErrorOf(kThisVersion, "\"rank\":0"), "");
  EXPECT_EQ(ErrorOf("\"version\":99", "\"rank\":0"),
            StrCat("expected the summary of a process of version ", kVersion,
                   ", found version 99; the older is this memreplay"));
  EXPECT_EQ(ErrorOf("", "\"rank\":0"),
            StrCat("expected the summary of a process of version ", kVersion,
                   ", found version 0; the older is what recorded it"));
}

TEST(ParseRecordedProcess, WhatItDoesNotKnowIsAnError) {
  const std::string error = ErrorOf(kThisVersion, "\"rank\":0,\"newer\":5");
  EXPECT_NE(error.find("newer"), std::string::npos) << error;
  EXPECT_TRUE(error.ends_with("; the older is this memreplay")) << error;
  EXPECT_NE(ErrorOf(kThisVersion, "\"rank\":\"x\"").find("expected the summary of a process: "),
            std::string::npos);
  EXPECT_FALSE(ParseRecordedProcess("").ok());
}

}  // namespace
}  // namespace memreplay

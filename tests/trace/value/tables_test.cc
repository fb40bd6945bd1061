#include "trace/value/tables.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace memreplay {
namespace {

TEST(StringTable, KeepsEachTextOnce) {
  StringTable strings;
  EXPECT_EQ(strings[0], "");
  EXPECT_EQ(strings.Intern(""), 0u);
  const uint32_t a = strings.Intern("a");
  const std::string_view view = strings[a];
  for (int i = 0; i < 1000; ++i) strings.Intern(std::to_string(i));
  EXPECT_EQ(view, "a");  // it has not moved
  EXPECT_EQ(strings.Intern("a"), a);
  EXPECT_EQ(strings.Find("999"), strings.Intern("999"));
  EXPECT_EQ(strings.Find("1000"), std::nullopt);
  EXPECT_EQ(strings.size(), 1002u);
}

TEST(StackTable, KeepsEachStackOnce) {
  StackTable stacks;
  EXPECT_TRUE(stacks[0].empty());
  std::vector<uint32_t> frames;
  for (uint32_t line = 1; line <= 3; ++line) frames.push_back(stacks.InternFrame({1, 2, line}));
  EXPECT_EQ(stacks.InternFrame({1, 2, 3}), frames[2]);
  EXPECT_EQ(stacks.FindFrame({1, 2, 4}), std::nullopt);
  const uint32_t whole = stacks.InternStack(frames);
  const uint32_t part = stacks.InternStack(absl::MakeConstSpan(frames).first(2));
  EXPECT_NE(whole, part);
  EXPECT_EQ(stacks.InternStack(frames), whole);
  EXPECT_EQ(stacks.FindStack(absl::MakeConstSpan(frames).first(2)), part);
  EXPECT_EQ(stacks.FindStack(absl::MakeConstSpan(frames).last(2)), std::nullopt);
  EXPECT_EQ(std::vector<uint32_t>(stacks[whole].begin(), stacks[whole].end()), frames);
  EXPECT_EQ(stacks.size(), 3u);
  EXPECT_EQ(stacks.frame_count(), 3u);
}

}  // namespace
}  // namespace memreplay

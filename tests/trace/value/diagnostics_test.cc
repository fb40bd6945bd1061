#include "trace/value/diagnostics.h"

#include <gtest/gtest.h>

namespace memreplay {
namespace {

constexpr DiagnosticKind kKind = DiagnosticKind::kUnknownKey;

TEST(DescribeDiagnostic, EachKindHasANameOfItsOwn) {
  for (size_t number = 0; number < static_cast<size_t>(DiagnosticKind::kCount); ++number) {
    const auto kind = static_cast<DiagnosticKind>(number);
    EXPECT_EQ(DiagnosticFromName(DescribeDiagnostic(kind).name), kind);
    EXPECT_NE(DescribeDiagnostic(kind).sentence, "");
  }
  EXPECT_EQ(DiagnosticFromName("unknown"), std::nullopt);
}

TEST(Diagnostics, CountsAllAndKeepsTheFirstPlaces) {
  Diagnostics first;
  EXPECT_TRUE(first.empty());
  for (uint64_t i = 0; i < 4; ++i) first.Add(kKind, i, "key", 10);
  Diagnostics second;
  for (uint64_t i = 100; i < 110; ++i) second.Add(kKind, i);
  first.Merge(second);
  EXPECT_EQ(first.count(kKind), 50u);
  ASSERT_EQ(first.places(kKind).size(), Diagnostics::kKeptPlaces);
  EXPECT_EQ(first.places(kKind)[3].detail, "key");
  EXPECT_EQ(first.places(kKind)[4].position, 100u);
  EXPECT_FALSE(first.empty());
}

TEST(Diagnostics, HasErrorsOnlyOfThatSeverity) {
  for (size_t number = 0; number < static_cast<size_t>(DiagnosticKind::kCount); ++number) {
    const auto kind = static_cast<DiagnosticKind>(number);
    Diagnostics one;
    one.Restore(kind, 1, {});
    EXPECT_EQ(one.has_errors(), DescribeDiagnostic(kind).severity == Severity::kError);
  }
}

}  // namespace
}  // namespace memreplay

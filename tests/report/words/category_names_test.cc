#include <gtest/gtest.h>

#include <sstream>

#include "absl/strings/numbers.h"
#include "report/page/parts.h"
#include "report/words/names.h"
#include "report/words/sizes.h"
#include "sim/category/category.h"
#include "tests/golden.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// Python and the page have copies of both, which their tests hold to the same file.
TEST(Words, AreThoseOfTheTable) {
  std::istringstream lines(ReadTestFile("tests/data/words.tsv"));
  std::string kind, of, words;
  int rows = 0;
  while (std::getline(lines, kind, '\t') && std::getline(lines, of, '\t') &&
         std::getline(lines, words)) {
    ++rows;
    int64_t size = 0;
    if (kind == "category") {
      EXPECT_EQ(CategoryNoun(of), words);
    } else {
      ASSERT_TRUE(absl::SimpleAtoi(of, &size)) << of;
      EXPECT_EQ(FormatSize(size), words);
    }
  }
  EXPECT_GT(rows, 30);
}

TEST(CategoryNoun, IsThatOfEveryTagAndHasAColourOnThePage) {
  for (size_t i = 0; i < kCategories; ++i) {
    const std::string_view name = CategoryName(static_cast<Category>(i));
    const std::string tone = StrCat("\"", CategoryNoun(name), "\": [");
    EXPECT_EQ(kScript.find(tone) != std::string_view::npos, name != "unknown") << name;
  }
  for (const std::string_view tag : {"optimizer", "weight_cast", "kv_cache"}) {
    EXPECT_EQ(CategoryNoun(tag), CategoryNoun(CategoryName(*CategoryOfTag(tag))));
  }
}

TEST(CategoryColumns, AreCalledByWhatTheyHold) {
  BytesByTag first, second;
  first["parameter"] = 5;
  first["kv_cache"] = 7;
  second["my_tag"] = 2;
  second["buffer"] = 3;
  const auto of = [](const std::vector<CategoryColumn>& columns, std::string_view heading) {
    for (const CategoryColumn& column : columns) {
      if (column.heading == heading) return StrCat(column.sentence, ": ", column.bytes.back());
    }
    return std::string("none");
  };
  EXPECT_EQ(of(CategoryColumns({&first}, true), "caches"), "KV cache: 7");
  EXPECT_EQ(of(CategoryColumns({&first}, true), "params"), "parameters: 5");
  EXPECT_EQ(of(CategoryColumns({&first}, true), "unknown"), ": 0");
  EXPECT_EQ(of(CategoryColumns({&first}, false), "unknown"), "none");
  const auto both = CategoryColumns({&first, &second}, true);
  EXPECT_EQ(of(both, "other"), "KV cache and everything else: 2");
  EXPECT_EQ(of(both, "params"), "parameters and buffers: 3");
}

}  // namespace
}  // namespace memreplay

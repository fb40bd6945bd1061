#include "report/table/table.h"

#include <gtest/gtest.h>

#include "report/page/html.h"
#include "report/table/tables.h"
#include "report/text/render.h"

namespace memreplay {
namespace {

constexpr int64_t kMiB = 1 << 20;

std::string Terminal(const Table& table) {
  std::string text;
  AddTable(table, &text);
  return text;
}

bool Has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// One table, as a sentence for each row and as columns.
TEST(Table, ReadsAsSentencesOnATerminalAndHasColumnsOnAPage) {
  const Table table =
      HeldTable("live by stack", "stack", {{3 * kMiB, "train.py:3 <step>", 1}, {kMiB, "other", ""}},
                4 * kMiB);
  EXPECT_EQ(Terminal(table),
            "\n  live by stack\n"
            "    3.00 MiB  train.py:3 <step> in 1 allocation\n"
            "    1.00 MiB  other\n");
  const std::string html = HtmlTable(table);
  EXPECT_TRUE(Has(html, "<caption>Live by stack</caption>"));
  EXPECT_TRUE(Has(html,
                  "<tr><td class=\"n\" title=\"3,145,728 bytes\">3.00 MiB</td>"
                  "<td class=\"n\">75.0 %</td><td><svg"))
      << html;
  EXPECT_TRUE(Has(html, "<td>train.py:3 &lt;step&gt;</td><td class=\"n\">1</td></tr>")) << html;
}

TEST(Table, IsNothingWithoutRows) {
  const Table table{"nothing", {{"size", Unit::kSize}}};
  EXPECT_EQ(Terminal(table), "");
  EXPECT_EQ(HtmlTable(table), "");
  EXPECT_EQ(Section(table), "");
}

TEST(Table, ColumnsAreAsWideAsTheirWidestCell) {
  Table table{"runs",
              {{"script", Unit::kWords, "  %-8s"}, {"count", Unit::kCount, "  %4s"}, {"end"}},
              true};
  table.Add({"a", 1, "x"});
  table.Add({"a long name", 1'000'000, ""}, Tone::kBad);
  table.note = "and 3 more";
  Text text;
  AddTable(table, &text);
  EXPECT_EQ(text.text,
            "\n  runs\n"
            "  script           count  end\n"
            "  a                    1  x\n"
            "  a long name  1,000,000\n"
            "  and 3 more\n");
  ASSERT_EQ(text.toned.size(), 1u);
  EXPECT_EQ(text.text.substr(text.toned[0].begin, 8), "  a long");
}

TEST(Table, APageLeavesOutWhatIsEmptyAndUnfoldsLines) {
  Table table{"",
              {{"size", Unit::kMib, "  %8s"},
               {"empty", Unit::kWords, ""},
               {"hidden", Unit::kWords, "  %s", 0, false},
               {"conf", Unit::kCode}},
              true};
  table.columns[3].leads = true;
  table.Add({kMiB / 2, "", "seen", "a:b  (current)"}).lines = {"x = 1"};
  EXPECT_EQ(Terminal(table),
            "      size  hidden  conf\n"
            "       0.5  seen  a:b  (current)\n"
            "    x = 1\n");
  const std::string html = HtmlTable(table);
  EXPECT_TRUE(Has(html, "<th scope=\"col\">conf</th><th scope=\"col\" class=\"n\">size</th></tr>"))
      << html;
  EXPECT_TRUE(Has(html,
                  "<details><summary><code>a:b</code>  (current)</summary>"
                  "<pre class=\"paste\">x = 1</pre></details>"))
      << html;
  EXPECT_FALSE(Has(html, "seen"));
}

// The largest modules are shown in the order of the tree.
TEST(ModuleTable, KeepsTheLargest) {
  proto::Categories categories;
  categories.set_peak_bytes(100 * kMiB);
  for (const auto& [path, size] : {std::pair("a", 60), std::pair("a.b", 5), std::pair("a.c", 50),
                                   std::pair("tiny", 1), std::pair("z", 40)}) {
    proto::Categories::Module& module = *categories.add_modules();
    module.set_path(path);
    module.set_live_bytes(size * kMiB);
  }
  const Table table = ModuleTable(categories, 3);
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.rows[0].cells[0].words, "a");
  EXPECT_EQ(table.rows[1].cells[0].words, "  a.c");
  EXPECT_EQ(table.rows[2].cells[0].words, "z");
  EXPECT_EQ(table.note, "and 1 smaller ones");
}

}  // namespace
}  // namespace memreplay

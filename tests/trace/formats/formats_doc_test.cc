// Reads every example of docs/formats.md, and as the format that the page says.
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "trace/formats/open_trace.h"
#include "trace/formats/write_trace.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

TEST(FormatsDocTest, ExamplesAreReadable) {
  std::ifstream page("docs/formats.md");
  ASSERT_TRUE(page) << "docs/formats.md is not among the test's data";
  std::map<std::string, int> read;
  std::string line;
  while (std::getline(page, line)) {
    if (line.rfind("```", 0) != 0) continue;
    const std::string format = line.substr(3);
    std::string example;
    while (std::getline(page, line) && line != "```") StrAppend(&example, line, "\n");
    const std::string path = ::testing::TempDir() + "/example";
    std::ofstream(path) << example;
    const auto trace = OpenTrace(path);
    ASSERT_TRUE(trace.ok()) << trace.status() << "\n" << example;
    EXPECT_EQ(trace->format, format);
    EXPECT_EQ(trace->diagnostics.count(DiagnosticKind::kUnknownKey), 0u) << example;
    ++read[format];
  }
  EXPECT_EQ(read, (std::map<std::string, int>{
                      {"flat_jsonl", 2}, {"op_log", 1}, {"program_json", 1}, {"program_text", 1}}));
}

// Every writable format has its row in the table.
TEST(FormatsDocTest, TableListsEveryFormat) {
  std::ifstream page("docs/formats.md");
  const std::string text((std::istreambuf_iterator<char>(page)), std::istreambuf_iterator<char>());
  for (const TraceFormat& format : WritableFormats()) {
    EXPECT_NE(text.find(StrCat("| `", format.name, "` |")), std::string::npos) << format.name;
  }
}

}  // namespace
}  // namespace memreplay

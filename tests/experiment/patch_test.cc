// Tests edits of files: how they are put together, and the patch that they are shown as.
#include "experiment/patch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "trace/value/strings.h"

namespace memreplay {
namespace {

using testing::HasSubstr;

class PatchTest : public testing::Test {
 protected:
  PatchTest() : folder_(StrCat(testing::TempDir(), "/patch")) {
    std::system(StrCat("rm -rf ", folder_, " && mkdir -p ", folder_).c_str());
  }

  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = StrCat(folder_, "/", name);
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  // An edit that puts `text` in place of `old`, or behind it if `inserts`.
  static proto::Edit EditOf(const std::string& path, const std::string& old,
                            const std::string& text, bool inserts = false) {
    std::ifstream file(path, std::ios::binary);
    const std::string all{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    const auto at = static_cast<int64_t>(all.find(old));
    const auto size = static_cast<int64_t>(old.size());
    proto::Edit edit;
    edit.set_file(path);
    edit.set_begin(inserts ? at + size : at);
    edit.set_end(at + size);
    edit.set_text(text);
    return edit;
  }

  std::string PatchOfEdits(std::vector<proto::Edit> edits) {
    const auto merged = MergeEdits(std::move(edits));
    EXPECT_TRUE(merged.ok()) << merged.status();
    const auto patch = PatchOf(*merged, folder_);
    EXPECT_TRUE(patch.ok()) << patch.status();
    return patch->text;
  }

  std::string folder_;
};

TEST_F(PatchTest, HasThreeLinesOfContextAndJoinsWhatIsNear) {
  std::string text;
  for (int i = 1; i <= 30; ++i) StrAppend(&text, "line ", i, "\n");
  const std::string path = Write("a.py", text);
  const std::string patch =
      PatchOfEdits({EditOf(path, "line 30", "last"), EditOf(path, "line 2\n", "new\n", true),
                    EditOf(path, "line 8", "eighth")});
  EXPECT_EQ(patch,
            "--- a/a.py\n+++ b/a.py\n"
            "@@ -1,11 +1,12 @@\n line 1\n line 2\n+new\n line 3\n line 4\n line 5\n line 6\n"
            " line 7\n-line 8\n+eighth\n line 9\n line 10\n line 11\n"
            "@@ -27,4 +28,4 @@\n line 27\n line 28\n line 29\n-line 30\n+last\n");
}

TEST_F(PatchTest, KeepsAMissingEndOfTheLastLine) {
  const std::string path = Write("a.py", "x = 1\ny = 2");
  EXPECT_EQ(PatchOfEdits({EditOf(path, "2", "3")}),
            "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n x = 1\n-y = 2\n"
            "\\ No newline at end of file\n+y = 3\n\\ No newline at end of file\n");
  EXPECT_EQ(PatchOfEdits({EditOf(path, "2", "\nz = 3", true)}),
            "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,3 @@\n x = 1\n-y = 2\n"
            "\\ No newline at end of file\n+y = 2\n+z = 3\n\\ No newline at end of file\n");
}

TEST_F(PatchTest, InsertsLinesInFrontOfWordsAtOnePlace) {
  const std::string path = Write("a.py", "a\nb\n");
  const std::string patch =
      PatchOfEdits({EditOf(path, "a\n", "    ", true), EditOf(path, "a\n", "new\n", true)});
  EXPECT_THAT(patch, HasSubstr(" a\n-b\n+new\n+    b\n"));
}

TEST_F(PatchTest, DeletesALineAndAJoinOfTwo) {
  const std::string path = Write("a.py", "a\nb\nc\nd\n");
  EXPECT_THAT(PatchOfEdits({EditOf(path, "b\n", "")}), HasSubstr("@@ -1,4 +1,3 @@\n a\n-b\n c\n"));
  EXPECT_THAT(PatchOfEdits({EditOf(path, "\nc", "")}), HasSubstr(" a\n b\n-c\n d\n"));
}

TEST_F(PatchTest, TakesWhatSeveralChangesInsertOnce) {
  const std::string path = Write("a.py", "import torch\nx = f(1)\n");
  const proto::Edit imported = EditOf(path, "import torch\n", "import os\n", true);
  const auto merged = MergeEdits(
      {imported, EditOf(path, "f(1", ", a=2", true), imported, EditOf(path, "f(1", ", b=3", true)});
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(merged->size(), 3);
  EXPECT_THAT(PatchOf(*merged, folder_)->text,
              HasSubstr("-x = f(1)\n+import os\n+x = f(1, a=2, b=3)\n"));
}

TEST_F(PatchTest, PutsACommaBetweenArgumentsOfAnEmptyCall) {
  const std::string path = Write("a.py", "x = f()\n");
  const proto::Edit first = EditOf(path, "f(", "a=1", true);
  EXPECT_THAT(PatchOfEdits({first, EditOf(path, "f(", "b=2", true), first}),
              HasSubstr("+x = f(a=1, b=2)\n"));
}

// A function is behind the import that it needs, though blank lines end it.
TEST_F(PatchTest, KeepsTheOrderOfAChange) {
  const std::string path = Write("a.py", "import torch\nx = f(1)\n");
  const auto merged =
      MergeEdits({EditOf(path, "import torch", "\nimport os", true),
                  EditOf(path, "import torch", "\n\n\ndef f(x):\n    os\n\n", true)});
  ASSERT_TRUE(merged.ok());
  EXPECT_THAT(PatchOf(*merged, folder_)->text,
              HasSubstr("+import os\n+\n+\n+def f(x):\n+    os\n"));
}

TEST_F(PatchTest, RejectsChangesOfTheSameWords) {
  const std::string path = Write("a.py", "x = f(1)\n");
  EXPECT_THAT(MergeEdits({EditOf(path, "f(1)", "g(1)"), EditOf(path, "f", "h")}).status().message(),
              HasSubstr("they change the same words"));
}

TEST_F(PatchTest, IsRelativeToTheFolderOrTheRepositoryAndStaysInIt) {
  std::system(StrCat("mkdir -p ", folder_, "/models ", folder_, "/tools").c_str());
  const std::string path = Write("models/net.py", "x = 1\n");
  EXPECT_THAT(PatchOfEdits({EditOf(path, "1", "2")}), HasSubstr("--- a/models/net.py\n"));
  const auto from_tools = [&] { return PatchOf({EditOf(path, "1", "2")}, folder_ + "/tools"); };
  EXPECT_THAT(from_tools().status().message(),
              HasSubstr("models/net.py is neither in the script's folder nor in its repository"));
  EXPECT_EQ(PatchOf({EditOf(path, "1", "2")}, folder_)->folder, "");
  Write(".git", "gitdir: elsewhere\n");  // as a worktree has it
  ASSERT_TRUE(from_tools().ok());
  EXPECT_THAT(from_tools()->text, HasSubstr("--- a/models/net.py\n"));
  EXPECT_EQ(from_tools()->folder, std::filesystem::canonical(folder_).string());
}

TEST_F(PatchTest, IsOfTheFolderOfTheScript) {
  const std::string path = Write("train.py", "");
  EXPECT_EQ(FolderOfScript({"torchrun", "--nproc-per-node=2", path, "--x", "other.py"}), folder_);
  EXPECT_EQ(FolderOfScript({"-m", "package.train"}), ".");
}

}  // namespace
}  // namespace memreplay

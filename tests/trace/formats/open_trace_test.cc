#include "trace/formats/open_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "absl/strings/escaping.h"
#include "tests/trace/support/py_value.h"
#include "tests/trace/support/sample_snapshot.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

std::string WriteFile(const std::string& name, const std::string& bytes) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

std::string ErrorOf(const std::string& bytes) {
  const absl::StatusOr<Trace> trace = OpenTrace(WriteFile("bad", bytes));
  return trace.ok() ? "read" : std::string(trace.status().message());
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(OpenTrace, TellsTheFormatFromTheBytes) {
  const Py sample = SampleSnapshot(Release::k25);
  const absl::StatusOr<Trace> pickle = OpenTrace(WriteFile("x.json", PythonPickle(sample)));
  ASSERT_TRUE(pickle.ok()) << pickle.status();
  EXPECT_EQ(pickle->format, "torch_snapshot_pickle");
  const absl::StatusOr<Trace> json = OpenTrace(WriteFile("x.pickle", Json(sample)));
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ(json->format, "torch_snapshot_json");
}

// Returns what `python -m torch.cuda._memory_viz trace_plot` writes: the pickle filled up to a
// multiple of three bytes, in base64.
std::string PageOf(std::string pickle) {
  pickle.resize(pickle.size() + 3 - pickle.size() % 3);
  std::string base64;
  absl::Base64Escape(pickle, &base64);
  return StrCat(
      "\n<!DOCTYPE html>\n<html>\n<head>\n</head>\n<body>\n<script type=\"module\">\n",
      "import {add_local_files} from \"https://cdn.jsdelivr.net/MemoryViz.js\"\n",
      "const local_files = [{\"name\": \"snapshot.pickle\", \"base64\": \"", base64,
      "\"}]\nadd_local_files(local_files, 'Active Memory Timeline')\n</script>\n</body>\n");
}

TEST(OpenTrace, ReadsThePageOfMemoryViz) {
  for (const Release release : {Release::k25, Release::k210}) {
    const std::string pickle = PythonPickle(SampleSnapshot(release));
    const absl::StatusOr<Trace> alone = OpenTrace(WriteFile("a", pickle));
    const absl::StatusOr<Trace> page = OpenTrace(WriteFile("a.html", PageOf(pickle)));
    ASSERT_TRUE(alone.ok() && page.ok()) << page.status();
    EXPECT_EQ(page->format, "torch_snapshot_page");
    ASSERT_EQ(page->devices.size(), alone->devices.size());
    for (size_t i = 0; i < page->devices.size(); ++i) {
      EXPECT_TRUE(std::equal(page->devices[i].events.begin(), page->devices[i].events.end(),
                             alone->devices[i].events.begin(), alone->devices[i].events.end()));
    }
  }
  const std::string page = PageOf(PythonPickle(SampleSnapshot(Release::k25)));
  for (size_t length = 300; length < page.find("\"}]"); length += 97) {  // cut off
    EXPECT_NE(ErrorOf(page.substr(0, length)), "read") << length;
  }
  EXPECT_TRUE(Contains(ErrorOf(PageOf("{\"segments\": []}")), "expected the pickle of a snapshot"));
  EXPECT_TRUE(
      Contains(ErrorOf("<html><script>\"base64\": \"???\""), "in base64, found other text"));
  EXPECT_TRUE(Contains(ErrorOf("<!doctype html><html></html>"), "an HTML page without a snapshot"));
}

TEST(OpenTrace, SaysWhatAPointerOfGitLfsStandsFor) {
  for (const std::string rest :
       {"oid sha256:0123\nsize 1270510\n", "ext-0-x sha256:0\noid sha256:01\n"}) {
    EXPECT_TRUE(
        Contains(ErrorOf("version https://git-lfs.github.com/spec/v1\n" + rest), "git lfs pull"));
  }
}

TEST(OpenTrace, ErrorsNameTheFile) {
  for (const std::string& bytes : {std::string("\x80\x04"), std::string("PK\3\4 a zip"),
                                   std::string("x"), std::string("{\"segments\": 1}")}) {
    EXPECT_TRUE(ErrorOf(bytes).starts_with(testing::TempDir() + "/bad: ")) << ErrorOf(bytes);
  }
  EXPECT_TRUE(Contains(ErrorOf("PK\3\4 a zip"), "unknown format"));
  EXPECT_FALSE(Contains(ErrorOf("PK\3\4 a zip"), "memreplay explain"));
  EXPECT_TRUE(Contains(ErrorOf("CUDA out of memory.\n"), "memreplay explain"));
  EXPECT_TRUE(Contains(ErrorOf("\x1f\x8b not really"), "gzip data is damaged"));
  EXPECT_TRUE(absl::IsNotFound(OpenTrace("/nowhere/at/all").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(OpenTrace(testing::TempDir()).status()));
}

}  // namespace
}  // namespace memreplay

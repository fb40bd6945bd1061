#include "trace/formats/open_trace.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/trace/support/py_value.h"
#include "tests/trace/support/sample_snapshot.h"

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

TEST(OpenTrace, ErrorsNameTheFile) {
  for (const std::string& bytes : {std::string("\x80\x04"), std::string("PK\3\4 a zip"),
                                   std::string("x"), std::string("{\"segments\": 1}")}) {
    EXPECT_TRUE(ErrorOf(bytes).starts_with(testing::TempDir() + "/bad: ")) << ErrorOf(bytes);
  }
  EXPECT_TRUE(Contains(ErrorOf("PK\3\4 a zip"), "unknown format"));
  EXPECT_TRUE(Contains(ErrorOf("\x1f\x8b not really"), "gzip data is damaged"));
  EXPECT_TRUE(absl::IsNotFound(OpenTrace("/nowhere/at/all").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(OpenTrace(testing::TempDir()).status()));
}

}  // namespace
}  // namespace memreplay

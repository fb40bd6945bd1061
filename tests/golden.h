// Golden files: the expected text of an output, kept beside the test and
// reviewed as a diff. To rewrite those of a folder after a wanted change:
//   ./check --accept tests/report/text
#ifndef MEMREPLAY_TESTS_GOLDEN_H_
#define MEMREPLAY_TESTS_GOLDEN_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace memreplay {

// The content of a file named from the workspace root; it must be in the
// test's `data`.
inline std::string ReadTestFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << "cannot read " << path;
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

// `actual` must equal the golden file `path`, named from the workspace root.
// With MEMREPLAY_ACCEPT set to the root of the tree, rewrites it.
inline void ExpectGolden(const std::string& path, const std::string& actual) {
  if (const char* root = std::getenv("MEMREPLAY_ACCEPT")) {
    std::ofstream(std::string(root) + "/" + path, std::ios::binary) << actual;
    return;
  }
  EXPECT_EQ(actual, ReadTestFile(path))
      << "if this is wanted, run ./check --accept; it rewrites " << path;
}

}  // namespace memreplay

#endif  // MEMREPLAY_TESTS_GOLDEN_H_

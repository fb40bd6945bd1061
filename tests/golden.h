// Golden files: the expected text of an output, kept next to the test and reviewed as a diff. After
// an intended change, this rewrites those of a folder:
//   ./check --accept tests/report/text
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace memreplay {

// Returns the content of a file named from the workspace root; it must be in the test's `data`.
inline std::string ReadTestFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << "cannot read " << path;
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

// Fails unless `actual` equals the golden file `path`, named from the workspace root. With
// MEMREPLAY_ACCEPT set to the root of the tree, rewrites the file.
inline void ExpectGolden(const std::string& path, const std::string& actual) {
  if (const char* root = std::getenv("MEMREPLAY_ACCEPT")) {
    std::ofstream(std::string(root) + "/" + path, std::ios::binary) << actual;
    return;
  }
  EXPECT_EQ(actual, ReadTestFile(path))
      << "if this is wanted, run ./check --accept; it rewrites " << path;
}

}  // namespace memreplay

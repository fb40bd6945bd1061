// requests_text RELEASE FOLDER FILE...: writes what the fuzz target "requests" makes of each file
// to FOLDER/NAME.jsonl.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/fuzz/targets.h"

int main(int argc, char** argv) {
  const auto profile = argc < 3 ? absl::InvalidArgumentError("expected RELEASE FOLDER FILE...")
                                : memreplay::FindTorchProfile(argv[1]);
  if (!profile.ok()) {
    std::fprintf(stderr, "requests_text: %s\n", std::string(profile.status().message()).c_str());
    return 2;
  }
  for (int i = 3; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    const std::string text = memreplay::fuzz::RequestsText(bytes, **profile);
    const std::string path = argv[i];
    if (text.empty()) continue;
    std::ofstream(std::string(argv[2]) + "/" + path.substr(path.rfind('/') + 1) + ".jsonl") << text;
  }
  return 0;
}
